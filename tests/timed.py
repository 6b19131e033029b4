"""Write small campaigns on one clock: logs in epoch seconds, a trace of every GPU beside them.

What each GPU draws and holds is given as a function of time, so what a report must show is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.campaigns import arm, closed_loop, write_campaign

T0_EPOCH_S = 1_772_366_400.0  # 2026-03-01T12:00:00Z
HEADER = ("request_index,status,start_s,first_token_s,last_token_s,end_s,input_tokens,"
          "output_tokens,output_tokens_source")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU of a trace: seconds since the trace's zero -> what it reads."""

    index: int = 0
    uuid: str = "GPU-00000000-0000-4000-8000-00000000000a"
    power_w: Callable[[float], float] = lambda t: 300.0
    memory_mib: Callable[[float], float] = lambda t: 20_000.0
    clock_mhz: Callable[[float], float] = lambda t: 1980.0
    limit_w: float = 700.0
    name: str = "NVIDIA H200"
    total_mib: int = 143_771


def write_run(path: Path, begin_s: float, *, streams: int, **loop: Any) -> float:
    """Write one run that begins so long after the zero; return when it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = closed_loop(streams=streams, **loop)
    lines = [HEADER]
    zero = T0_EPOCH_S + begin_s
    for i, row in enumerate(rows):
        start = zero + row["start"]
        times = (start, start + row["ttft"], start + row["took"], start + row["took"])
        shown = ",".join(f"{t:.6f}" for t in times)
        lines.append(f"{i},ok,{shown},{int(row['input'])},{int(row['output'])},usage")
    path.write_text("\n".join(lines) + "\n")
    return begin_s + max(row["start"] + row["took"] for row in rows)


def smi_text(gpus: Sequence[Gpu], begin_s: float, end_s: float, *, step_s: float = 0.1) -> str:
    """Print what `nvidia-smi --query-gpu ... -lms` prints (UTC), GPU after GPU at every moment."""
    lines = [
        "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], "
        "memory.total [MiB], power.draw.instant [W], enforced.power.limit [W], "
        "clocks.current.sm [MHz], clocks_event_reasons.active"
    ]
    count = round((end_s - begin_s) / step_s)
    for k in range(count + 1):
        moment = begin_s + k * step_s
        for gpu in gpus:
            at = moment + 0.003 * gpu.index
            stamp = datetime.fromtimestamp(T0_EPOCH_S + at, UTC)
            when = stamp.strftime("%Y/%m/%d %H:%M:%S.") + f"{stamp.microsecond // 1000:03d}"
            lines.append(
                f"{when}, {gpu.index}, {gpu.uuid}, {gpu.name}, 99 %, "
                f"{gpu.memory_mib(at):.0f} MiB, {gpu.total_mib} MiB, {gpu.power_w(at):.2f} W, "
                f"{gpu.limit_w:.2f} W, {gpu.clock_mhz(at):.0f} MHz, 0x0000000000000000"
            )
    return "\n".join(lines) + "\n"


def write_timed(
    folder: Path,
    *,
    levels: Sequence[int] = (1, 8),
    repeats: int = 2,
    gpus: Mapping[str, Sequence[Gpu]] | None = None,
    arm_keys: Mapping[str, Mapping[str, Any]] | None = None,
    lead_s: float = 5.0,
    tail_s: float = 5.0,
    n: int = 60,
    step_s: float = 0.1,
    **keys: Any,
) -> Path:
    """Write two arms, level after level and repeat after repeat, with one trace an arm.

    `lead_s` of idle samples stand before the first request (negative: the trace comes too late).
    """
    entries = {}
    for name in ("a", "b"):
        begin = 10.0
        first = begin
        for repeat in range(1, repeats + 1):
            for level in levels:
                path = folder / name / f"c{level}_r{repeat}.csv"
                begin = (
                    write_run(path, begin, streams=level, n=n, seed=2 * repeat + (name == "b"))
                    + 2.0
                )
        held = (gpus or {}).get(name, (Gpu(),))
        text = smi_text(held, first - lead_s, begin + tail_s, step_s=step_s)
        (folder / name / "trace.csv").write_text(text)
        logs = {"files": f"{name}/c{{level}}_r{{repeat}}.csv", "clock": "epoch"}
        entries[name] = arm(
            name, files=logs, traces=[f"{name}/trace.csv"], client_version=None,
            **dict((arm_keys or {}).get(name, {})),
        )  # fmt: skip
    return write_campaign(folder, entries, time_zone="UTC", **keys)


def levels_begin(folder: Path, name: str = "a") -> dict[tuple[int, int], float]:
    """(level, repeat) -> seconds from the zero to the first request of that run."""
    found = {}
    for path in sorted((folder / name).glob("c*_r*.csv")):
        level, repeat = path.stem[1:].split("_r")
        first = path.read_text().splitlines()[1].split(",")[2]
        found[(int(level), int(repeat))] = float(first) - T0_EPOCH_S
    return found


def change(campaign: Path, **keys: Any) -> Path:
    """Rewrite some keys of a campaign file; `arms` is merged arm by arm."""
    content = json.loads(campaign.read_text())
    for name, entry in keys.pop("arms", {}).items():
        content["arms"][name] |= entry
    campaign.write_text(json.dumps(content | keys))
    return campaign
