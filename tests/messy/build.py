"""Build the messy campaign from the logs of real clients: what a lab has before anybody tidied up.

Every number comes from a mock server (`data/clients`), and the title says so.
"""

from __future__ import annotations

import shutil
from pathlib import Path

CLIENTS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "clients"

_VLLM = CLIENTS / "vllm-bench-0.32.0"
_SGLANG = CLIENTS / "sglang-0.4.6.post5"

CUT = "a100-sxm-vllm/c4_r3.json"
TABLE = "h20/runs.csv"

CAMPAIGN = """\
campaign: messy
title: Five kinds of card on a mock server (mock data, not GPU measurements)
model: {name: mock-7b, parameters: 7e9, weight_bits: 16, layers: 32, kv_heads: 32, head_dim: 128,
        kv_bits: 16}
workload: {input_tokens: 256, output_tokens: 64, load: closed}
slo: {ttft_s: {p95: 1.0}, tpot_s: {p50: 0.03}}
arms:
  双卡4090:
    gpu: RTX 4090 24GB
    gpus: 2
    engine: vllm
    precision: bf16
    driver: "550"
    files: 4090x2/c{level}_r{repeat}.json*
    infeasible: [{level: 64, reason: out of memory}]
  "4090":
    gpu: RTX 4090 24GB
    engine: vllm
    precision: bf16
    driver: "550"
    files: 4090/c{level}_r{repeat}.json*
  A100 PCIe:
    gpu: A100 80GB PCIe
    engine: vllm
    precision: bf16
    driver: "535"
    files: a100-pcie/c{level}_r{repeat}.json*
  A100 SXM:
    gpu: A100 80GB SXM4
    engine: sglang
    precision: bf16
    driver: "535"
    files: a100-sxm/c{level}_r{repeat}.jsonl*
  A100 SXM vLLM:
    gpu: A100 80GB SXM4
    engine: sglang
    precision: bf16
    driver: "535"
    files: a100-sxm-vllm/c{level}_r{repeat}.json*
  H20:
    gpu: H20 96GB
    engine: sglang
    precision: bf16
    driver: "560"
    files: ["h20/c{level}_r{repeat}.jsonl*", h20/runs.csv]
comparisons:
  - {name: 4090 vs A100 PCIe, baseline: A100 PCIe, candidate: "4090"}
  - {name: pair vs A100 PCIe, baseline: A100 PCIe, candidate: 双卡4090}
  - {name: pair vs one 4090, baseline: "4090", candidate: 双卡4090}
  - {name: SXM vs PCIe, baseline: A100 PCIe, candidate: A100 SXM}
  - {name: tools, baseline: A100 SXM, candidate: A100 SXM vLLM}
  - {name: H20 vs A100 SXM, baseline: A100 SXM, candidate: H20}
"""

# A run table as an office saves it: GBK, Chinese header, units in the names.
_TABLE = (
    "运行,并发数,首token时延(ms),每token时延(ms),吞吐(tok/s)\r\n"
    "H20-夜间1,64,812.4,19.7,2310\r\n"
    "H20-夜间2,64,798.0,19.9,2295\r\n"
)


def build(folder: Path) -> Path:
    """Write the campaign into a folder and return its file."""
    for arm, profile in (
        ("4090x2", "rtx4090x2-tp2"), ("4090", "rtx4090-24g"),
        ("a100-pcie", "a100-pcie-80g"), ("a100-sxm-vllm", "a100-sxm-80g"),
    ):  # fmt: skip
        _copy(_VLLM, profile, folder / arm, ".json")
    for arm, profile in (("a100-sxm", "a100-sxm-80g"), ("h20", "h20-96g")):
        _copy(_SGLANG, profile, folder / arm, ".jsonl")
    whole = (folder / CUT).read_bytes()
    (folder / CUT).write_bytes(whole[: len(whole) * 2 // 3])
    (folder / TABLE).write_bytes(_TABLE.encode("gbk"))
    path = folder / "campaign.yaml"
    path.write_text(CAMPAIGN, encoding="utf-8")
    return path


def _copy(source: Path, profile: str, target: Path, ending: str) -> None:
    target.mkdir(parents=True)
    for case in sorted(source.glob(f"{profile}_c*_r*")):
        (log,) = case.glob(f"*{case.name}{ending}*")
        end = log.name.partition(case.name)[2]
        shutil.copy(log, target / (case.name.removeprefix(f"{profile}_") + end))
