"""What the server and the host say themselves, level by level, beside the client and the GPU."""

from __future__ import annotations

from collections.abc import Sequence

from gpuverdict.case import Case
from gpuverdict.diagnosis import Situation
from gpuverdict.tables.answers import plain_table
from gpuverdict.tables.markup import Section
from gpuverdict.tables.notes import merged, noted
from gpuverdict.tables.rows import arms_of
from gpuverdict.tables.words import level_name, percent, spoken
from gpuverdict.units import format_value

__all__ = ["host_table", "server_table"]

_HOST_CODES = ("host_without_clock", "host_not_covered")


def server_table(case: Case, lang: str = "en") -> Section:
    """Set the server's own queue, prefill and decode beside what the client's log alone says."""
    told = [s for s in _in_order(case) if s.server_source]
    several = len({s.workload for s in case.situations}) > 1
    rows = [
        [
            *_place(s, lang, several),
            _source(s, lang),
            _both(s.server_queue_s, s.excess_estimate_s),
            _both(s.server_prefill_s, s.prefill_estimate_s),
            format_value(s.server_decode_s, "s"),
            format_value(s.network_s, "s"),
            _share(s.prefix_cache_hit_ratio),
            _share(s.kv_cache_use_ratio),
            _count(s.preemptions),
            _count(s.waiting_requests),
        ]
        for s in told
    ]
    codes = ("col_arm", "col_level", "server_source", "server_queue", "server_prefill",
             "server_decode", "server_network", "server_hits", "server_kv", "server_preempted",
             "server_waiting")  # fmt: skip
    return plain_table(
        "server_side",
        spoken(lang, "server_heading"),
        [spoken(lang, code) for code in codes],
        rows,
        reading=spoken(lang, "server_reading"),
        notes=_notes(case, lang, host=False),
        nothing=spoken(lang, "server_nothing"),
        right=[spoken(lang, code) for code in codes[3:]],
    )


def host_table(case: Case, lang: str = "en") -> Section:
    """Set the host's load beside the GPU's, over the windows of each level's runs."""
    told = [s for s in _in_order(case) if _has_host(s)]
    several = len({s.workload for s in case.situations}) > 1
    rows = [
        [
            *_place(s, lang, several),
            _share(s.gpu_util_ratio),
            _share(s.host_cpu_busy_ratio),
            _share(s.host_core_busy_ratio),
            _process(s),
            _share(s.host_io_wait_ratio),
            _number(s.host_swap_mib_s, "MiB/s"),
            format_value(s.host_memory_free_mib, "mib"),
            _network(s),
        ]
        for s in told
    ]
    codes = ("col_arm", "col_level", "host_gpu", "host_cpu", "host_core", "host_process",
             "host_io", "host_swap", "host_free", "host_network")  # fmt: skip
    return plain_table(
        "host_side",
        spoken(lang, "host_heading"),
        [spoken(lang, code) for code in codes],
        rows,
        reading=spoken(lang, "host_reading"),
        notes=_notes(case, lang, host=True),
        nothing=spoken(lang, "host_nothing"),
        right=[spoken(lang, code) for code in codes[2:]],
    )


def _in_order(case: Case) -> list[Situation]:
    return [s for arm in arms_of(case) for s in case.situations if s.arm == arm]


def _place(s: Situation, lang: str, several: bool) -> list[str]:
    level = level_name(s.level, lang)
    return [s.arm, f"{s.workload}, {level}" if several else level]


def _source(s: Situation, lang: str) -> str:
    return spoken(lang, f"server_from_{s.server_source}", n=s.n_server_joined)


def _both(server: float | None, estimate: float | None) -> str:
    """The server's value, and in brackets what the client's log alone would say."""
    told = format_value(server, "s")
    return told if estimate is None else f"{told} ({format_value(estimate, 's')})"


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _number(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:.3g} {unit}"


def _process(s: Situation) -> str:
    if s.host_process_cpu_ratio is None:
        return "–"
    named = f" {s.host_process_name}" if s.host_process_name else ""
    return f"{_share(s.host_process_cpu_ratio)}{named}"


def _network(s: Situation) -> str:
    told = _number(s.host_network_mb_s, "MB/s")
    if s.host_network_use_ratio is None:
        return told
    return f"{told} ({_share(s.host_network_use_ratio)})"


def _has_host(s: Situation) -> bool:
    known = (s.host_cpu_busy_ratio, s.host_core_busy_ratio, s.host_process_cpu_ratio,
             s.host_io_wait_ratio, s.host_memory_free_mib, s.host_network_mb_s)  # fmt: skip
    return any(value is not None for value in known)


def _notes(case: Case, lang: str, *, host: bool) -> Sequence[str]:
    """Say what is missing and why, once, with the arms that lack it."""
    notes = [
        noted(s.arm, c, lang)
        for s in _in_order(case)
        for c in s.cautions
        if (c.code in _HOST_CODES) == host
    ]
    return merged(notes, lang)
