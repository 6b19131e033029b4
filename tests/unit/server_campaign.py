"""A small campaign with everything a server and its host write beside the client's log.

Each request of arm `b` waits `WAIT_S` in the server's queue before a prefill of `PREFILL_S`; the
network takes `NETWORK_S`. Its GPU idles while one core of its host is full.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.campaigns import closed_loop

T0 = 1_796_090_000.0
PREFILL_S, NETWORK_S, WAIT_S = 0.03, 0.006, {"a": 0.002, "b": 0.25}
LEVELS, REPEATS = (1, 4), (1, 2, 3)
TPOT_S = 0.01


def build(folder: Path) -> Path:
    """Write the logs and the campaign file; returns the file."""
    at = T0
    for arm in ("a", "b"):
        (folder / arm).mkdir(parents=True)
        spans, pages, served, first = [], [], 0, at
        for level in LEVELS:
            for repeat in REPEATS:
                pages.append(page(at - 0.5, served, arm))
                rows = run(arm, level, repeat, at)
                text = "\n".join(json.dumps(row["client"]) for row in rows)
                (folder / arm / f"c{level}_r{repeat}.jsonl").write_text(text + "\n")
                spans += [row["server"] for row in rows]
                served += len(rows)
                end = max(row["client"]["end_s"] for row in rows)
                pages.append(page(end + 0.5, served, arm))
                at = end + 4
        exports = [json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [s]}]}]}) for s in spans]
        (folder / arm / "spans.jsonl").write_text("\n".join(exports) + "\n")
        (folder / arm / "metrics.prom").write_text("".join(pages))
        (folder / arm / "vmstat.txt").write_text(vmstat(first - 2, at))
        (folder / arm / "pidstat.txt").write_text(pidstat(first - 2, at, arm))
        (folder / arm / "gpu.csv").write_text(gpu_trace(first - 2, at, arm))
        at += 60
    (folder / "b" / "engine_c16.log").write_text(
        "INFO 12-01 ready <script>alert(1)</script>\n"
        "ERROR <b>/home/someone/x</b> torch.OutOfMemoryError: CUDA out of memory. Tried 2.00 GiB\n"
    )
    (folder / "b" / "engine_c4.log").write_text(
        "WARNING Sequence group 7 is preempted by PreemptionMode.RECOMPUTE\n" * 3
        + "of which 1.2 GiB is reserved by PyTorch but unallocated\n"
    )
    (folder / "b" / "engine_c8.log").write_text(
        "INFO --max-model-len 8192 avoids out of memory on small cards\n"
        "INFO memory profiling takes 2.1 s, gpu_memory_utilization=0.9, 41 GiB for KV cache\n"
    )
    return campaign(folder)


def run(arm: str, level: int, repeat: int, at: float) -> list[dict[str, Any]]:
    ttft = PREFILL_S + NETWORK_S + WAIT_S[arm]
    loop = closed_loop(streams=level, n=60, tpot_s=TPOT_S, ttft_s=ttft, seed=10 * level + repeat)
    rows = []
    for number, one in enumerate(loop):
        identity = f"{arm}-{level}-{repeat}-{number}"
        start = at + one["start"]
        end = start + one["took"]
        decode = one["took"] - one["ttft"]
        client = {
            "request_index": number, "request_id": f"chatcmpl-{identity}", "status": "ok",
            "start_s": start, "first_token_s": start + one["ttft"], "last_token_s": end,
            "end_s": end, "input_tokens": 256, "output_tokens": 32,
            "output_tokens_source": "usage",
        }  # fmt: skip
        told = {
            "latency.time_in_queue": one["ttft"] - PREFILL_S - NETWORK_S,
            "latency.time_in_model_prefill": PREFILL_S, "latency.time_in_model_decode": decode,
            "latency.e2e": one["took"] - NETWORK_S,
        }  # fmt: skip
        attributes = [{"key": f"gen_ai.{k}", "value": {"doubleValue": v}} for k, v in told.items()]
        attributes.append({"key": "gen_ai.request.id", "value": {"stringValue": identity}})
        server = {
            "traceId": identity, "spanId": "1", "name": "llm_request", "attributes": attributes,
            "startTimeUnixNano": str(int((start + NETWORK_S / 2) * 1e9)),
            "endTimeUnixNano": str(int((end - NETWORK_S / 2) * 1e9)),
        }  # fmt: skip
        rows.append({"client": client, "server": server})
    return rows


def page(at: float, served: int, arm: str) -> str:
    lines = [f"# scrape_epoch_s {at}"]
    for name, each in (("queue", WAIT_S[arm]), ("prefill", PREFILL_S), ("decode", 31 * TPOT_S)):
        series = f"vllm:request_{name}_time_seconds"
        lines += [f"{series}_sum {each * served}", f"{series}_count {served}"]
    lines += [f"vllm:num_preemptions_total {served // 30 if arm == 'b' else 0}",
              f"vllm:prefix_cache_queries_total {256 * served}",
              f"vllm:prefix_cache_hits_total {64 * served}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def vmstat(start: float, end: float) -> str:
    head = (
        "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- "
        "-----timestamp-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us"
        " sy id wa st                 UTC\n"
    )
    stamps = range(int(start), int(end) + 1)
    row = " 1  0      0 4194304 0 0    0    0     0     0   57   85  {us}  1 {id}  0  0 {at}\n"
    return head + "".join(row.format(us=24, id=75, at=_clock(at, " ")) for at in stamps)


def pidstat(start: float, end: float, arm: str) -> str:
    day = datetime.fromtimestamp(start, tz=UTC).strftime("%m/%d/%Y")
    lines = [f"Linux 6.8.0 (node) \t{day} \t_x86_64_\t(4 CPU)"]
    busy = 99.0 if arm == "b" else 20.0
    for at in range(int(start), int(end) + 1):
        clock = datetime.fromtimestamp(at, tz=UTC).strftime("%H:%M:%S")
        lines += ["", f"{clock}  UID  PID  %usr %system %guest %wait %CPU CPU Command",
                  f"{clock}  0  4101  {busy} 0.00 0.00 0.00 {busy} 3 =python3"]  # fmt: skip
    return "\n".join(lines) + "\n"


def gpu_trace(start: float, end: float, arm: str) -> str:
    head = "timestamp, uuid, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"
    uuid = f"GPU-{arm * 8}-1111-2222-3333-444444444444"
    util = 35 if arm == "b" else 96
    step = 0.5
    stamps = [start + step * k for k in range(int((end - start) / step))]
    return head + "".join(
        f"{_clock(at, ' ', '%Y/%m/%d')}, {uuid}, 0, {util} %, 40000 MiB, 300.00 W\n"
        for at in stamps
    )


def _clock(at: float, between: str, day: str = "%Y-%m-%d") -> str:
    stamp = datetime.fromtimestamp(at, tz=UTC)
    text = stamp.strftime(f"{day}{between}%H:%M:%S")
    return text if day == "%Y-%m-%d" else f"{text}.{stamp.microsecond // 1000:03d}"


def campaign(folder: Path) -> Path:
    arms = "".join(
        f"  {arm}:\n    gpu: H200 SXM\n    precision: bf16\n    engine: vllm\n"
        f'    files: {{files: "{arm}/c{{level}}_r{{repeat}}.jsonl", clock: epoch}}\n'
        "    server_starts: each\n"
        f"    server_requests: {arm}/spans.jsonl\n    traces: [{arm}/gpu.csv]\n"
        f"    server_metrics: [{arm}/metrics.prom, {arm}/vmstat.txt, {arm}/pidstat.txt]\n"
        + (
            f'    factors: {{slow_host: true}}\n    server_logs: "{arm}/engine_c{{level}}.log"\n'
            if arm == "b"
            else ""
        )
        for arm in ("a", "b")
    )
    path = folder / "campaign.yaml"
    path.write_text(
        "campaign: serverside\ntitle: A synthetic server and its host\nsimulated: true\n"
        "time_zone: UTC\nmodel: {name: m}\nworkload: {input_tokens: 256, output_tokens: 32, "
        f"load: closed}}\narms:\n{arms}"
        "comparisons: [{name: ab, baseline: a, candidate: b, treatment: [slow_host]}]\n"
    )
    return path
