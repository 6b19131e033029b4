"""Inventories: -L, topo -m with terminal codes, and -q -x of old and new drivers."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions, open_documents
from gpuverdict.telemetry import inventory

ARM = Path(__file__).resolve().parents[2] / "data" / "h200" / "card-a-bf16"


def document(text: str) -> Document:
    return Document(path=Path("i.txt"), name="i.txt", data=text.encode(), hashed=lambda: "d" * 64)


def read(text: str):
    assert inventory.why_not(document(text), ReadOptions()) is None
    return inventory.read(document(text), ReadOptions())


def real(name: str):
    return inventory.read(open_documents(ARM / name)[0], ReadOptions())


def test_the_three_real_documents_join_to_one_row():
    names = ("nvidia-smi-L.txt", "nvidia-smi-topo.txt", "nvidia-smi-q.xml.gz")
    merged = inventory.merge_inventories([real(name) for name in names])
    (row,) = merged.rows(named=True)
    xml = gzip.decompress((ARM / "nvidia-smi-q.xml.gz").read_bytes()).decode()
    assert row["gpu_uuid"] == re.search(r"<uuid>(.*?)</uuid>", xml)[1]
    assert row["memory_total_mib"] == float(re.search(r"<total>(\d+) MiB", xml)[1])
    assert row["driver"] == re.search(r"<driver_version>(.*?)<", xml)[1]
    assert row["power_limit_w"] == row["power_max_w"] == 700.0
    assert (row["pcie_gen_max"], row["pcie_width_max"]) == (5, 16)
    assert row["numa"] == "0"
    assert row["name"] == "NVIDIA H200"


TOPOLOGY = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tPHB\tSYS\tNODE\t0-15\t0\t\tN/A\n"
    "GPU1\tPHB\t X \tNV12\tSYS\t0-15\t0\t\tN/A\n"
    "GPU2\tSYS\tNV12\t X \tSYS\t16-31\t1\t\tN/A\n"
    "NIC0\tNODE\tSYS\tSYS\t X \t\t\t\t\n\nLegend:\n\n  X    = Self\n"
)


def test_links_and_numa_nodes_of_several_gpus():
    frame = read(TOPOLOGY)
    assert frame["interconnect"].to_list() == ["1:PHB 2:SYS", "0:PHB 2:NV12", "0:SYS 1:NV12"]
    assert frame["numa"].to_list() == ["0", "0", "1"]


def test_a_list_with_mig_slices():
    frame = read(
        "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-a)\n"
        "  MIG 3g.40gb     Device  1: (UUID: MIG-b)\n"
        "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n"
    )
    assert frame["mig"].to_list() == ["Enabled", None]
    assert frame["sku_note"][0] == "MIG 2 slices: 3g.40gb 3g.40gb"


def xml(driver: str, power: str, uuid: str = "GPU-1") -> str:
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v11.dtd">\n'
        f"<nvidia_smi_log><driver_version>{driver}</driver_version><cuda_version>11.4</cuda_version>"
        f'<gpu id="00000000:17:00.0"><product_name>A</product_name><uuid>{uuid}</uuid>'
        "<fb_memory_usage><total>24564 MiB</total></fb_memory_usage>"
        f"{power}<ecc_mode><current_ecc>N/A</current_ecc></ecc_mode></gpu></nvidia_smi_log>\n"
    )


@pytest.mark.parametrize(
    "power",
    [
        "<power_readings><power_limit>450.00 W</power_limit>"
        "<enforced_power_limit>380.00 W</enforced_power_limit>"
        "<max_power_limit>600.00 W</max_power_limit></power_readings>",
        "<gpu_power_readings><current_power_limit>380.00 W</current_power_limit>"
        "<requested_power_limit>450.00 W</requested_power_limit>"
        "<max_power_limit>600.00 W</max_power_limit></gpu_power_readings>",
    ],
)
def test_each_generation_gives_the_enforced_limit(power):
    (row,) = read(xml("470.1", power)).rows(named=True)
    assert row["power_limit_w"] == 380.0
    assert row["power_max_w"] == 600.0
    assert row["ecc"] is None


def test_concatenated_documents_are_one_inventory():
    text = xml("550", "") + xml("550", "") + xml("550", "", "GPU-2")
    assert read(text)["gpu_uuid"].to_list() == ["GPU-1", "GPU-2"]


def test_cut_or_hostile_xml_is_refused_in_one_line():
    with pytest.raises(LogFormatError, match="broken XML"):
        read(xml("550", "")[:-30])
    bomb = xml("550", "").replace("<nvidia_smi_log>", '<!ENTITY a "b"><nvidia_smi_log>')
    with pytest.raises(LogFormatError, match="entities"):
        read(bomb)


def test_contradicting_documents_of_one_gpu_are_refused():
    one = read("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n")
    other = read("GPU 0: NVIDIA A100 80GB PCIe (UUID: GPU-1)\n")
    with pytest.raises(LogFormatError, match="name"):
        inventory.merge_inventories([one, other])
