"""What a host says about its GPUs: `nvidia-smi -L`, `topo -m` and `-q -x` of several generations.

Three documents, one frame: each fills what it knows, and `merge_inventories` joins them by UUID or,
where a document has none, by index. Read from a real host: -L, topo -m, DTD v13. The names of DTD
v9 to v12 are read from documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import polars as pl

from gpuverdict.errors import LogFormatError
from gpuverdict.files import Document, ReadOptions
from gpuverdict.schema import GPU_INVENTORY, check, conform, empty

__all__ = ["merge_inventories", "read", "why_not"]

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LIST = re.compile(r"^GPU (\d+): (.+?)(?: \(UUID: ([^)]+)\))?\s*$")
_MIG = re.compile(r"^\s+MIG (\S+)\s+Device\s+(\d+):\s*(?:\(UUID: ([^)]+)\))?")
_NOTHING = {"", "n/a", "none", "unknown", "unknown error"}


def why_not(document: Document, options: ReadOptions) -> str | None:
    """Say why a document is no inventory of nvidia-smi, or None if it is one."""
    head = _ANSI.sub("", document.data[:8192].decode("utf-8", errors="replace")).lstrip("\x00 \r\n")
    if "<nvidia_smi_log" in head:
        return None
    if _LIST.match(head.split("\n", 1)[0].rstrip("\r")):
        return None
    if re.match(r"^\s*GPU0\b", head) and re.search(r"^GPU0\s+X\b", head, re.M):
        return None
    return "it is neither `nvidia-smi -L`, `topo -m` nor `-q -x`"


def read(document: Document, options: ReadOptions) -> pl.DataFrame:
    """Read one inventory document.

    Returns
    -------
    polars.DataFrame
        One row a GPU, columns of `GPU_INVENTORY`; null where the document does not say.
        `interconnect` lists the link to each other GPU (`1:PHB 2:SYS`).

    Raises
    ------
    LogFormatError
        For XML that is cut or declares entities, or a table without a GPU.
    """
    text = _ANSI.sub("", document.text).strip("\x00")
    if "<nvidia_smi_log" in text:
        rows = _from_xml(document, text)
    elif _LIST.match(text.lstrip("\r\n ").split("\n", 1)[0].rstrip("\r")):
        rows = _from_list(text)
    else:
        rows = _from_topology(text)
    if not rows:
        raise LogFormatError(document.name, found="no GPU", expected="at least one GPU")
    schema = {key: GPU_INVENTORY[key].dtype for key in dict.fromkeys(k for r in rows for k in r)}
    frame = conform(pl.DataFrame(rows, schema=schema), GPU_INVENTORY)
    return check(frame, GPU_INVENTORY, document.name)


def merge_inventories(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Join the inventories of one host: by UUID where both have one, else by index.

    The first document that knows a value gives it.

    Raises
    ------
    LogFormatError
        When two documents contradict each other about name or memory of one GPU.
    """
    merged: list[dict[str, Any]] = []
    for frame in frames:
        for row in frame.rows(named=True):
            same = next((known for known in merged if _is_same(known, row)), None)
            if same is None:
                merged.append(dict(row))
                continue
            for key in ("name", "memory_total_mib"):
                if None not in (same[key], row[key]) and same[key] != row[key]:
                    raise LogFormatError(
                        f"inventory of GPU {row['gpu_index']}",
                        found=f"{key} {same[key]} and {row[key]}",
                        expected="one",
                        remedy="give an arm the inventory of its own host only",
                    )
            same.update({k: v for k, v in row.items() if same.get(k) is None})
    if not merged:
        return empty(GPU_INVENTORY)
    schema = {key: column.dtype for key, column in GPU_INVENTORY.items()}
    return pl.DataFrame(merged, schema=schema)


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    if one["gpu_uuid"] and other["gpu_uuid"]:
        return bool(one["gpu_uuid"] == other["gpu_uuid"])
    return one["gpu_index"] is not None and one["gpu_index"] == other["gpu_index"]


def _from_list(text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    slices: list[list[str]] = []
    for line in text.splitlines():
        if found := _LIST.match(line):
            rows.append(
                {"gpu_index": int(found[1]), "name": found[2], "gpu_uuid": found[3] or None}
            )
            slices.append([])
        elif rows and (part := _MIG.match(line)):
            slices[-1].append(part[1])
    for row, profiles in zip(rows, slices, strict=True):
        if profiles:
            row["mig"] = "Enabled"
            row["sku_note"] = f"MIG {len(profiles)} slices: {' '.join(profiles)}"
    return rows


def _from_topology(text: str) -> list[dict[str, Any]]:
    lines = [line.rstrip() for line in text.splitlines()]
    header_at = next(i for i, line in enumerate(lines) if re.match(r"^\s*GPU0\b", line))
    header = [cell.strip() for cell in lines[header_at].split("\t")]
    header = header[1:] if header and not header[0] else header
    rows = []
    for line in lines[header_at + 1 :]:
        cells = [cell.strip() for cell in line.split("\t")]
        if not re.fullmatch(r"GPU\d+", cells[0]):
            if not line.strip():
                break
            continue
        named = dict(zip(header, cells[1:], strict=False))
        links = [
            f"{name[3:]}:{named[name]}"
            for name in header
            if re.fullmatch(r"GPU\d+", name) and named.get(name, "") not in ("X", "")
        ]
        rows.append(
            {
                "gpu_index": int(cells[0][3:]),
                "interconnect": " ".join(links) or None,
                "numa": _known(_numa(header, cells)),
            }
        )
    return rows


def _numa(header: list[str], cells: list[str]) -> str | None:
    """Find the NUMA cell: empty cells in a row shift nothing in tabs, but widths vary by driver."""
    if "NUMA Affinity" not in header:
        return None
    after_links = sum(1 for name in header if re.fullmatch(r"(?:GPU|NIC|mlx5_)\S*", name))
    rest = [cell for cell in cells[1 + after_links :] if cell]
    position = header[after_links:].index("NUMA Affinity")
    return rest[position] if position < len(rest) else None


def _from_xml(document: Document, text: str) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for part in re.split(r"(?=<\?xml)", text):
        if "<nvidia_smi_log" not in part:
            continue
        for row in _from_one_log(document, part):
            rows.setdefault(str(row["gpu_uuid"] or row["gpu_index"]), row)
    return list(rows.values())


def _from_one_log(document: Document, part: str) -> list[dict[str, Any]]:
    if "<!ENTITY" in part:
        raise LogFormatError(document.name, found="XML entities", expected="none in such a file")
    body = re.sub(r"<!DOCTYPE[^>]*>", "", part, count=1).strip()
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as problem:
        raise LogFormatError(
            document.name, found=f"broken XML ({problem})", expected="whole XML documents"
        ) from None
    driver, cuda = _text(root, "driver_version"), _text(root, "cuda_version")
    return [
        {"gpu_index": index, "driver": driver, "cuda": cuda, **_gpu(gpu)}
        for index, gpu in enumerate(root.iter("gpu"))
    ]


def _gpu(gpu: ElementTree.Element) -> dict[str, Any]:
    power = next(
        (
            found
            for name in ("gpu_power_readings", "power_readings")
            if (found := gpu.find(name)) is not None
        ),
        ElementTree.Element("none"),
    )
    mig_devices = gpu.findall("mig_devices/mig_device")
    return {
        "gpu_uuid": _text(gpu, "uuid"),
        "name": _text(gpu, "product_name"),
        "board_part": _text(gpu, "board_part_number"),
        "pci_bus_id": _text(gpu, "pci/pci_bus_id"),
        "vbios": _text(gpu, "vbios_version"),
        "memory_total_mib": _number(gpu, "fb_memory_usage/total", "MiB"),
        "power_limit_w": _first_number(
            power, ("enforced_power_limit", "current_power_limit", "power_limit"), "W"
        ),
        "power_default_w": _number(power, "default_power_limit", "W"),
        "power_max_w": _number(power, "max_power_limit", "W"),
        "max_sm_mhz": _number(gpu, "max_clocks/sm_clock", "MHz"),
        "max_mem_mhz": _number(gpu, "max_clocks/mem_clock", "MHz"),
        "ecc": _text(gpu, "ecc_mode/current_ecc"),
        "mig": _text(gpu, "mig_mode/current_mig"),
        "persistence": _text(gpu, "persistence_mode"),
        "pcie_gen_max": _whole(gpu, "pci/pci_gpu_link_info/pcie_gen/max_link_gen"),
        "pcie_gen_current": _whole(gpu, "pci/pci_gpu_link_info/pcie_gen/current_link_gen"),
        "pcie_width_max": _whole(gpu, "pci/pci_gpu_link_info/link_widths/max_link_width"),
        "pcie_width_current": _whole(gpu, "pci/pci_gpu_link_info/link_widths/current_link_width"),
        "sku_note": f"MIG {len(mig_devices)} slices" if mig_devices else None,
    }


def _known(text: str | None) -> str | None:
    text = (text or "").strip()
    if text.lower() in _NOTHING or text.startswith("["):
        return None
    return text


def _text(node: ElementTree.Element, path: str) -> str | None:
    found = node.find(path)
    return _known(found.text if found is not None else None)


def _number(node: ElementTree.Element, path: str, unit: str) -> float | None:
    found = re.fullmatch(rf"([-\d.]+) {unit}", _text(node, path) or "")
    return float(found[1]) if found else None


def _first_number(node: ElementTree.Element, paths: tuple[str, ...], unit: str) -> float | None:
    return next((v for p in paths if (v := _number(node, p, unit)) is not None), None)


def _whole(node: ElementTree.Element, path: str) -> int | None:
    found = re.fullmatch(r"(\d+)x?", _text(node, path) or "")
    return int(found[1]) if found else None
