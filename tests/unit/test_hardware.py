"""Label against device: the mistakes a buyer is told about, and the near misses that are none."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest

from gpuverdict.errors import ParameterError
from gpuverdict.files import ReadOptions, open_documents
from gpuverdict.hardware import (
    BLOCKING_IDENTITY_CODES,
    catalogue,
    check_identity,
    describe_devices,
    identify,
    match_label,
    resolve_gpu,
)
from gpuverdict.schema import GPU_INVENTORY, conform
from gpuverdict.telemetry import inventory as inventory_reader
from gpuverdict.telemetry import smi_query
from gpuverdict.text import SENTENCES

ROOT = Path(__file__).resolve().parents[2]
H200 = ROOT / "data" / "h200"


def cards(n=1, name="NVIDIA GeForce RTX 4090", memory=24564.0, **facts) -> pl.DataFrame:
    rows = [
        {
            "gpu_index": i,
            "gpu_uuid": f"GPU-{i}",
            "name": name,
            "memory_total_mib": memory,
            "driver": "550.54.15",
        }
        | {key: value[i] if isinstance(value, list) else value for key, value in facts.items()}
        for i in range(n)
    ]
    schema = {key: GPU_INVENTORY[key].dtype for key in rows[0]}
    return conform(pl.DataFrame(rows, schema=schema), GPU_INVENTORY)


def told(label, gpus, frame, traces=()):
    title, cautions = check_identity(label, gpus, frame, traces)
    return title, [c.code for c in cautions]


def blocked(label, gpus, frame) -> list[str]:
    return [code for code in told(label, gpus, frame)[1] if code in BLOCKING_IDENTITY_CODES]


def test_the_catalogue_is_the_published_table():
    shared = ROOT.parent / "shared" / "gpu_specs.csv"
    if not shared.exists():
        pytest.skip("the data folder is not beside the repo")
    rows = list(csv.DictReader(shared.open()))
    assert [row.name for row in catalogue()] == [f"{r['gpu']} {r['variant']}" for r in rows]
    for row, source in zip(catalogue(), rows, strict=True):
        for key in ("memory_gb", "memory_bandwidth_gb_per_s", "bf16_dense_tflops", "tdp_w"):
            assert getattr(row, key) == (float(source[key]) if source[key] else None)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("H200 SXM", "H200 SXM 141GB"),
        ("NVIDIA H200", "H200 SXM 141GB"),
        ("A100 80GB PCIe", "A100 80GB PCIe"),
        ("a100 sxm 80 gb", "A100 80GB SXM4"),
        ("PCIe H100", "H100 80GB PCIe"),
        ("RTX 4090 24GB", "RTX 4090 24GB"),
        ("4090 24G", "RTX 4090 24GB"),
        ("GeForce RTX 4090 modified", "RTX 4090 48GB modified"),
        ("RTX 4090 D", "RTX 4090D 24GB"),
        ("H20 96GB", "H20 96GB"),
    ],
)
def test_words_name_one_row(label, name):
    assert match_label(label).name == name


@pytest.mark.parametrize(
    ("label", "mentions"),
    [
        ("A100", ["A100 80GB PCIe", "A100 80GB SXM4"]),
        ("RTX 4090", ["RTX 4090 24GB", "RTX 4090 48GB modified"]),
        ("H20", ["H20 96GB", "H20 141GB"]),
        ("RTX 4090 x2", ["RTX 4090 24GB", "gpus"]),
        ("A100 40GB", ["A100 80GB PCIe"]),
        ("", ["one row"]),
        ("Voodoo 2", ["one row"]),
    ],
)
def test_anything_else_lists_the_candidates(label, mentions):
    with pytest.raises(ParameterError) as problem:
        match_label(label)
    for text in mentions:
        assert text in str(problem.value)


def test_a_description_counts_only_with_its_own_figures():
    row = resolve_gpu({"name": "RTX 4090 48 GB (modified)", "memory_gb": 48.0, "tdp_w": 450.0})
    assert (row.memory_gb, row.tdp_w, row.memory_bandwidth_gb_per_s) == (48.0, 450.0, None)
    assert blocked(row, 1, cards(memory=49140.0)) == []


def test_the_title_says_what_the_devices_say():
    frame = cards(2, interconnect=["1:PHB", "0:PHB"], power_limit_w=450.0, numa="0")
    title, codes = told("RTX 4090 24GB", 2, frame)
    assert title == "RTX 4090 x2 (2 x 24,564 MiB, PHB, 450 W, driver 550)"
    assert codes == []


def test_without_an_inventory_it_is_a_declaration():
    assert told("A100 80GB PCIe", 1, None) == (
        "A100 80GB PCIe (declared, not verified)",
        ["identity_declared"],
    )


def test_one_48_gb_card_is_not_two_of_24():
    assert blocked("RTX 4090 48GB modified", 1, cards(2)) == ["identity_two_cards"]
    assert blocked("RTX 4090 24GB", 2, cards(1, memory=49140.0)) == ["identity_one_card"]
    assert blocked("RTX 4090 24GB", 1, cards(1, memory=49140.0)) == ["identity_memory"]
    # The near misses: the right labels of the same hosts.
    assert blocked("RTX 4090 24GB", 2, cards(2)) == []
    assert blocked("RTX 4090 48GB modified", 1, cards(1, memory=49140.0)) == []


@pytest.mark.parametrize(
    ("label", "device", "memory", "found"),
    [
        ("A100 80GB SXM4", "NVIDIA A100 80GB PCIe", 81920.0, ["identity_form_factor"]),
        ("A100 80GB PCIe", "NVIDIA A100-SXM4-80GB", 81920.0, ["identity_form_factor"]),
        ("A100 80GB SXM4", "NVIDIA A100-SXM4-80GB", 81920.0, []),
        ("A100 80GB SXM4", "NVIDIA A100-SXM4-40GB", 40960.0, ["identity_memory"]),
        ("H100 80GB SXM5", "NVIDIA H100 80GB HBM3", 81559.0, []),
        ("H100 80GB PCIe", "NVIDIA H100 80GB HBM3", 81559.0, ["identity_form_factor"]),
        ("H100 80GB SXM5", "NVIDIA H100 PCIe", 81559.0, ["identity_form_factor"]),
        ("H100 80GB SXM5", "NVIDIA H800", 81559.0, ["identity_model"]),
        ("H200 SXM", "NVIDIA H20", 97871.0, ["identity_model"]),
        ("H200 SXM", "NVIDIA H200 NVL", 143771.0, ["identity_form_factor"]),
        ("H200 SXM", "NVIDIA H200", 143771.0, []),
        ("RTX 4090 24GB", "NVIDIA GeForce RTX 4090 D", 24564.0, ["identity_model"]),
        ("RTX 4090 24GB", "NVIDIA GeForce RTX 4090 Laptop GPU", 16376.0, ["identity_model"]),
        ("RTX 4090D", "NVIDIA GeForce RTX 4090 D", 24564.0, []),
        ("RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation", 49140.0, []),
        ("L40S", "NVIDIA L20", 46068.0, ["identity_model"]),
        ("L40S", "NVIDIA L40S", 46068.0, []),
        ("L40S", "NVIDIA L40S", 44000.0, ["identity_memory"]),
        ("V100 SXM2", "Tesla V100-SXM2-32GB", 32768.0, []),
    ],
)
def test_model_variant_and_memory(label, device, memory, found):
    assert blocked(label, 1, cards(name=device, memory=memory)) == found


def test_the_largest_power_limit_tells_builds_apart_where_the_name_does_not():
    board = cards(name="NVIDIA H800", memory=81559.0, power_max_w=700.0)
    assert blocked("H800 80GB PCIe", 1, board) == ["identity_form_factor"]
    assert blocked("H800 80GB SXM5", 1, board) == []
    unknown = told("H800 80GB SXM5", 1, cards(name="NVIDIA H800", memory=81559.0))[1]
    assert unknown == ["identity_form_unverified"]


def test_counts_slices_mixtures_and_other_hosts():
    assert blocked("RTX 4090 24GB", 4, cards(2)) == ["identity_count"]
    assert told("RTX 4090 24GB", 1, cards(2))[1] == ["identity_which_cards"]
    a100 = {"name": "NVIDIA A100-SXM4-80GB", "memory": 81920.0}
    assert blocked("A100 80GB SXM4", 1, cards(1, mig="Enabled", **a100)) == ["identity_mig"]
    assert blocked("A100 80GB SXM4", 1, cards(1, mig="Disabled", **a100)) == []
    mixed = cards(2).with_columns(pl.Series("memory_total_mib", [24564.0, 49140.0]))
    assert blocked("RTX 4090 24GB", 2, mixed) == ["identity_mixed"]


def test_circumstances_are_told_but_do_not_block():
    pair = cards(2, interconnect=["1:SYS", "0:SYS"], numa=["0", "1"])
    assert told("RTX 4090 24GB", 2, pair)[1] == ["identity_cross_numa"]
    capped = cards(1, power_limit_w=350.0, power_default_w=450.0)
    assert told("RTX 4090 24GB", 1, capped)[1] == ["identity_power_capped"]
    renamed = cards(1, power_limit_w=200.0, power_default_w=200.0)
    assert told("RTX 4090 24GB", 1, renamed)[1] == ["identity_renamed"]
    bridge = cards(2, name="NVIDIA A100 80GB PCIe", memory=81920.0, interconnect=["1:PHB", "0:PHB"])
    assert told("A100 80GB PCIe", 2, bridge)[1] == ["identity_no_nvlink"]
    linked = bridge.with_columns(pl.Series("interconnect", ["1:NV12", "0:NV12"]))
    assert told("A100 80GB PCIe", 2, linked)[1] == []


def test_the_real_host_says_what_it_is():
    names = ("nvidia-smi-L.txt", "nvidia-smi-topo.txt", "nvidia-smi-q.xml.gz")
    documents = [open_documents(H200 / "card-a-bf16" / name)[0] for name in names]
    frame = inventory_reader.merge_inventories(
        [inventory_reader.read(document, ReadOptions()) for document in documents]
    )
    trace = smi_query.read(
        open_documents(H200 / "card-a-bf16" / "nvidia-smi-query.csv.gz")[0], ReadOptions()
    )
    assert told("H200 SXM", 1, frame, [trace]) == ("H200 (143,771 MiB, 700 W, driver 580)", [])
    assert told("H200 SXM", 1, None, [trace])[0] == "H200 (143,771 MiB, 700 W)"
    assert blocked("H100 SXM", 1, frame) == ["identity_model"]
    other = smi_query.read(
        open_documents(H200 / "card-b-bf16" / "nvidia-smi-query.csv.gz")[0], ReadOptions()
    )
    assert told("H200 SXM", 1, frame, [other])[1] == ["identity_other_host"]


def test_the_traced_cards_are_chosen_from_a_larger_host():
    trace = smi_query.read(
        open_documents(H200 / "card-a-bf16" / "nvidia-smi-query.csv.gz")[0], ReadOptions()
    )
    uuid = trace.info["gpus"][0]["gpu_uuid"]
    host = cards(8, name="NVIDIA H200", memory=143771.0).with_columns(
        pl.Series("gpu_uuid", [uuid, *(f"GPU-{i}" for i in range(7))])
    )
    identity = identify(host, [trace])
    assert identity is not None
    assert identity.count == 1


def test_the_title_in_chinese():
    identity = identify(cards(1, power_limit_w=450.0))
    assert identity is not None
    assert describe_devices(identity, "zh") == "RTX 4090（24,564 MiB, 450 W, 驱动 550）"


def test_every_blocking_code_is_a_sentence():
    assert set(SENTENCES) >= BLOCKING_IDENTITY_CODES
