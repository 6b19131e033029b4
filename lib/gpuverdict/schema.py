"""The declared frames: which columns exist, of which dtype, in which unit, and what is better.

Anything that becomes a frame is checked against one of these declarations; every label and
"lower is better" of a table or figure is looked up here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from gpuverdict.errors import Caution, SchemaError

__all__ = [
    "FIGURE_FORMATS",
    "GPU_INVENTORY",
    "GPU_SAMPLES",
    "METRICS",
    "REQUESTS",
    "RUN_FIELDS",
    "SERVER_METRICS",
    "SERVER_REQUESTS",
    "SERVER_TIMES",
    "STATISTICS",
    "STATUSES",
    "SUMMARY",
    "TOKEN_GAPS",
    "Column",
    "Metric",
    "Run",
    "Trace",
    "check",
    "conform",
    "empty",
    "polars_schema",
    "run_level",
]

Better = Literal["lower", "higher"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One declared column: dtype, base unit, a label, and whether null is allowed."""

    dtype: Any
    unit: str = ""
    label: str = ""
    nullable: bool = True


def _c(dtype: Any, unit: str = "", label: str = "", *, nullable: bool = True) -> Column:
    return Column(dtype=dtype, unit=unit, label=label, nullable=nullable)


_F, _I, _S = pl.Float64, pl.Int64, pl.String

STATUSES = ("ok", "error", "cancelled", "incomplete", "empty")

# 17.2 of the format notes. Times are seconds since the run's t0 (its earliest start).
REQUESTS: dict[str, Column] = {
    "run_id": _c(_S, nullable=False),
    "request_index": _c(_I, label="request", nullable=False),
    "request_id": _c(_S),
    "phase": _c(_S, nullable=False),
    "status": _c(_S, nullable=False),
    "start_s": _c(_F, "s", "start"),
    "first_token_s": _c(_F, "s", "first token"),
    "last_token_s": _c(_F, "s", "last token"),
    "end_s": _c(_F, "s", "end"),
    "ttft_s": _c(_F, "s", "time to first token"),
    "e2e_s": _c(_F, "s", "end-to-end time"),
    "tpot_s": _c(_F, "s", "time per output token"),
    "client_queue_s": _c(_F, "s", "wait in the client"),
    "server_queue_s": _c(_F, "s", "wait in the server"),
    "server_prefill_s": _c(_F, "s", "prefill (server)"),
    "server_decode_s": _c(_F, "s", "decode (server)"),
    "input_tokens": _c(_I, "tokens", "input tokens"),
    "cached_input_tokens": _c(_I, "tokens", "input tokens from cache"),
    "output_tokens": _c(_I, "tokens", "output tokens"),
    "reasoning_tokens": _c(_I, "tokens", "reasoning tokens"),
    "output_tokens_source": _c(_S),
    "n_chunks": _c(_I, label="chunks"),
    "error_kind": _c(_S),
}

# 17.3: gap k lies between events k and k+1; the first token's own wait is never in it.
TOKEN_GAPS: dict[str, Column] = {
    "run_id": _c(_S, nullable=False),
    "request_index": _c(_I, nullable=False),
    "gaps_s": _c(pl.List(_F), "s"),
    "gap_kind": _c(_S),
    "tokens_per_event": _c(pl.List(pl.Int32)),
}

# 17.4
GPU_SAMPLES: dict[str, Column] = {
    "trace_id": _c(_S, nullable=False),
    "host": _c(_S),
    "gpu_uuid": _c(_S),
    "gpu_index": _c(pl.Int32),
    "time_epoch_s": _c(_F, "s"),
    "elapsed_s": _c(_F, "s"),
    "power_w": _c(_F, "w", "power"),
    "power_kind": _c(_S),
    "power_average_w": _c(_F, "w", "power (average field)"),
    "power_instant_w": _c(_F, "w", "power (instant field)"),
    "energy_j": _c(_F, "j", "energy counter"),
    "gpu_util_ratio": _c(_F, "ratio", "GPU utilisation"),
    "mem_util_ratio": _c(_F, "ratio", "memory utilisation"),
    "sm_active_ratio": _c(_F, "ratio"),
    "sm_occupancy_ratio": _c(_F, "ratio"),
    "tensor_active_ratio": _c(_F, "ratio"),
    "dram_active_ratio": _c(_F, "ratio"),
    "memory_used_mib": _c(_F, "mib", "memory used"),
    "memory_total_mib": _c(_F, "mib", "memory"),
    "sm_clock_mhz": _c(_F, "mhz", "SM clock"),
    "mem_clock_mhz": _c(_F, "mhz", "memory clock"),
    "temperature_c": _c(_F, "c", "temperature"),
    "mem_temperature_c": _c(_F, "c", "memory temperature"),
    "power_limit_w": _c(_F, "w", "enforced power limit"),
    "throttle_mask": _c(pl.UInt64),
    "pstate": _c(_S),
    "pcie_rx_mb_s": _c(_F),
    "pcie_tx_mb_s": _c(_F),
    "nvlink_rx_mb_s": _c(_F),
    "nvlink_tx_mb_s": _c(_F),
    "fan_ratio": _c(_F, "ratio"),
    "source": _c(_S),
    "null_reason": _c(_S),
}

# 17.5
GPU_INVENTORY: dict[str, Column] = {
    "host": _c(_S),
    "gpu_index": _c(pl.Int32),
    "gpu_uuid": _c(_S),
    "name": _c(_S),
    "board_part": _c(_S),
    "pci_bus_id": _c(_S),
    "driver": _c(_S),
    "cuda": _c(_S),
    "vbios": _c(_S),
    "memory_total_mib": _c(_F, "mib"),
    "power_limit_w": _c(_F, "w"),
    "power_default_w": _c(_F, "w"),
    "power_max_w": _c(_F, "w"),
    "max_sm_mhz": _c(_F, "mhz"),
    "max_mem_mhz": _c(_F, "mhz"),
    "ecc": _c(_S),
    "mig": _c(_S),
    "persistence": _c(_S),
    "pcie_gen_max": _c(pl.Int32),
    "pcie_gen_current": _c(pl.Int32),
    "pcie_width_max": _c(pl.Int32),
    "pcie_width_current": _c(pl.Int32),
    "interconnect": _c(_S),
    "numa": _c(_S),
    "sku_note": _c(_S),
}

# 17.6
SERVER_METRICS: dict[str, Column] = {
    "run_id": _c(_S),
    "time_epoch_s": _c(_F, "s"),
    "name": _c(_S, nullable=False),
    "labels": _c(_S, label="labels as sorted JSON"),
    "value": _c(_F),
}

# One request as the server saw it. The three times add up to at most `server_e2e_s`; `note` says
# why a row has none.
SERVER_TIMES = ("server_queue_s", "server_prefill_s", "server_decode_s")
SERVER_REQUESTS: dict[str, Column] = {
    "request_id": _c(_S),
    "arrival_epoch_s": _c(_F, "s"),
    "server_queue_s": _c(_F, "s", "wait in the server"),
    "server_prefill_s": _c(_F, "s", "prefill (server)"),
    "server_decode_s": _c(_F, "s", "decode (server)"),
    "server_ttft_s": _c(_F, "s"),
    "server_e2e_s": _c(_F, "s"),
    "input_tokens": _c(_I, "tokens"),
    "cached_input_tokens": _c(_I, "tokens"),
    "output_tokens": _c(_I, "tokens"),
    "source": _c(_S, nullable=False),
    "note": _c(_S),
}

# 17.1, as keys of Run.info; everything absent is None.
RUN_FIELDS: tuple[str, ...] = (
    "run_id", "source_format", "source_name", "source_sha256", "source_part", "tool",
    "tool_version", "engine", "engine_version", "model_id", "model_revision", "tokenizer_id",
    "precision", "kv_dtype", "gpu_label", "gpu_uuids", "gpu_count", "n_nodes", "tp", "pp", "dp",
    "ep", "load_kind", "rate_rps", "rate_unbounded", "max_concurrency", "burstiness", "stage_id",
    "sweep_id", "server_start_id", "repeat_no", "block_id", "order_no", "n_planned", "n_rows",
    "n_ok", "n_error", "n_cancelled", "n_incomplete", "n_empty", "dropped", "t0_epoch_s",
    "t0_quality", "clock", "duration_s", "measure_start_s", "measure_end_s", "streaming",
    "spec_decode", "ttft_def", "e2e_def", "gap_kind", "token_time_source", "output_tokens_source",
    "warmup_policy", "reported", "warnings", "requested_input_tokens", "requested_output_tokens",
    "prefill_chunk_tokens", "unverified",
)  # fmt: skip

# What figures can be written as, named here since the command line asks before it loads any.
FIGURE_FORMATS = ("svg", "png")

STATISTICS = ("mean", "p50", "p90", "p95", "p99", "std", "min", "max", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What a metric is: base unit, labels, direction, and whether "faster" is the word for it."""

    unit: str
    label: str
    label_zh: str
    better: Better
    speed: bool = True
    distribution: bool = False  # has one value a request (or gap), hence quantiles
    formula: str = ""


def _m(unit: str, label: str, label_zh: str, better: Better, **kw: Any) -> Metric:
    return Metric(unit=unit, label=label, label_zh=label_zh, better=better, **kw)


METRICS: dict[str, Metric] = {
    "ttft_s": _m("s", "TTFT", "首 token 时延（TTFT）", "lower", distribution=True,
                 formula="first token - start"),
    "tpot_s": _m("s", "TPOT", "每 token 时延（TPOT）", "lower", distribution=True,
                 formula="(last token - first token) / (output tokens - 1)"),
    "tpot_token_weighted_s": _m("s", "TPOT, token-weighted", "按 token 加权的 TPOT", "lower",
                                formula="sum of decode times / sum of (output tokens - 1)"),
    "itl_s": _m("s", "ITL", "token 间隔（ITL）", "lower", distribution=True,
                formula="gap between two tokens"),
    "chunk_gap_s": _m("s", "gap between chunks", "数据块间隔", "lower", distribution=True,
                      formula="gap between two streamed events"),
    "e2e_s": _m("s", "E2E", "端到端时延（E2E）", "lower", distribution=True,
                formula="last token - start"),
    "normalized_e2e_s_per_token": _m("s_per_token", "E2E per output token",
                                     "每输出 token 端到端时延", "lower", distribution=True,
                                     formula="E2E / output tokens"),
    "scheduling_excess_s": _m("s", "scheduling excess", "调度超额时延", "lower", distribution=True,
                              formula="max(0, TTFT - unloaded prefill time)"),
    "decode_step_s": _m("s", "device decode step", "设备解码步时", "lower",
                        formula="Huber location of gaps that overlap no prefill"),
    "decode_batch": _m("requests", "decode batch", "解码批大小", None, speed=False,
                       formula="time mean of requests between first and last token"),
    "output_tokens_per_s": _m("tokens_per_s", "output throughput", "输出吞吐", "higher",
                              formula="output token events in the window / window"),
    "output_tokens_per_s_per_gpu": _m("tokens_per_s", "output throughput per GPU", "单卡输出吞吐",
                                      "higher", formula="output throughput / GPUs"),
    "input_tokens_per_s": _m("tokens_per_s", "input throughput", "输入吞吐", "higher",
                             formula="input tokens of requests started in the window / window"),
    "output_tokens_per_s_finished_only": _m(
        "tokens_per_s", "output throughput, finished only", "仅完成请求的输出吞吐", "higher",
        formula="output tokens of finished requests / window"),
    "output_tokens_per_s_full_run": _m("tokens_per_s", "output throughput, full run",
                                       "全程输出吞吐", "higher",
                                       formula="all output tokens / duration"),
    "requests_per_s": _m("requests_per_s", "request rate", "请求速率", "higher",
                         formula="requests started in the window / window"),
    "prefill_tokens_per_s": _m("tokens_per_s", "prefill rate", "预填充速率", "higher",
                               formula="median of input tokens / TTFT, unloaded, client side"),
    "decode_tokens_per_s": _m("tokens_per_s", "decode rate of one stream", "单流解码速率", "higher",
                              formula="1 / median TPOT"),
    "error_ratio": _m("ratio", "error ratio", "错误率", "lower", speed=False,
                      formula="(errors + empties) / requests sent"),
    "empty_ratio": _m("ratio", "empty ratio", "空响应率", "lower", speed=False,
                      formula="empties / requests sent"),
    "goodput_requests_per_s": _m("requests_per_s", "goodput", "有效吞吐（goodput）", "higher",
                                 formula="requests that meet every part of the SLO / window"),
    "concurrency": _m("requests", "observed concurrency", "实测并发", None, speed=False,
                      formula="time mean of requests in flight"),
    "peak_concurrency": _m("requests", "peak concurrency", "峰值并发", None, speed=False,
                           formula="most requests in flight at once"),
    "peak_decode_batch": _m("requests", "peak decode batch", "峰值解码批大小", None, speed=False,
                            formula="most requests between first and last token at once"),
    "ttft_error_adjusted_s": _m("s", "TTFT, failures as infinite", "计入失败的 TTFT", "lower",
                                formula="nearest rank, a failed request never answers"),
    "e2e_error_adjusted_s": _m("s", "E2E, failures as infinite", "计入失败的 E2E", "lower",
                               formula="nearest rank, a failed request never answers"),
    "output_tokens_per_s_near_peak": _m(
        "tokens_per_s", "output throughput near peak", "接近峰值并发时的输出吞吐", "higher",
        formula="token events / longest stretch with >= 90 % of the peak in flight"),
    "below_peak_ratio": _m("ratio", "time below 90 % of peak concurrency",
                           "低于峰值并发 90% 的时间占比", None, speed=False,
                           formula="time with in-flight < 0.9 peak / duration"),
    "power_w": _m("w", "power", "功率", "lower", speed=False,
                  formula="energy over the window / window"),
    "energy_j": _m("j", "energy", "能耗", "lower", speed=False, formula="energy over the window"),
    "energy_per_output_token_j": _m("j_per_token", "energy per output token", "每输出 token 能耗",
                                    "lower", speed=False, formula="energy / output tokens"),
    "memory_used_mib": _m("mib", "memory peak", "显存峰值", "lower", speed=False,
                          formula="largest sample, summed over GPUs"),
    "sm_clock_mhz": _m("mhz", "SM clock", "SM 时钟", None, speed=False,
                       formula="median of busy samples"),
    "sm_clock_spread_ratio": _m("ratio", "SM clock spread", "SM 时钟波动", "lower", speed=False,
                                formula="(max - min) / median of busy samples"),
    "throttled_ratio": _m("ratio", "throttled samples", "降频样本占比", "lower", speed=False,
                          formula="busy samples with a slow-down bit / busy samples"),
}  # fmt: skip

SUMMARY: dict[str, Column] = {
    "run_id": _c(_S, nullable=False),
    "arm": _c(_S),
    "workload": _c(_S),
    "level": _c(_S, label="level as sorted JSON"),
    "repeat_no": _c(_I),
    "metric": _c(_S, nullable=False),
    "statistic": _c(_S, nullable=False),
    "value": _c(_F),
    "unit": _c(_S, nullable=False),
    "n": _c(_I),
    "window": _c(_S, nullable=False),
    "window_start_s": _c(_F, "s"),
    "window_end_s": _c(_F, "s"),
    "n_sent": _c(_I),
    "n_dropped": _c(_I),
    "cautions": _c(pl.List(_S)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured run of one file: facts, request rows, token gaps, reservations.

    `info` has the keys of `RUN_FIELDS`; `requests` and `gaps` follow `REQUESTS` and `TOKEN_GAPS`.
    `gaps` has at most one row a request and may be empty.
    """

    info: Mapping[str, Any]
    requests: pl.DataFrame
    gaps: pl.DataFrame
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        i = self.info
        return f"run {i['run_id'][:12]}: {i['source_format']}, {i['n_ok']} of {i['n_rows']} ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Samples of one or more GPUs of one host, and what the file says about itself.

    `samples` follows `GPU_SAMPLES`, in file order. `info` holds `source_format`, `source_name`,
    `source_sha256`, `time_zone` and whatever else the reader knows.
    """

    samples: pl.DataFrame
    info: Mapping[str, Any] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()


def run_level(info: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the load level a log states: `{"concurrency": 16}`, `{"rate_requests_per_s": 4.0}`
    or `{"batch": 8}`.

    A finite rate is the level even where a limit of streams stands beside it; None where the log
    states neither.

    Examples
    --------
    >>> run_level({"max_concurrency": 16}), run_level({"rate_rps": 4.0, "max_concurrency": 16})
    ({'concurrency': 16}, {'rate_requests_per_s': 4.0})
    """
    if info.get("rate_rps") is not None and not info.get("rate_unbounded"):
        return {"rate_requests_per_s": float(info["rate_rps"])}
    if info.get("max_concurrency") is not None:
        streams = float(info["max_concurrency"])
        kind = "batch" if info.get("load_kind") == "offline" else "concurrency"
        return {kind: int(streams) if streams == int(streams) else streams}
    return None


def polars_schema(declared: Mapping[str, Column]) -> dict[str, Any]:
    """Return column -> dtype of a declaration."""
    return {name: column.dtype for name, column in declared.items()}


def empty(declared: Mapping[str, Column]) -> pl.DataFrame:
    """Return a frame without rows that follows the declaration."""
    return pl.DataFrame(schema=polars_schema(declared))


def conform(frame: pl.DataFrame, declared: Mapping[str, Column]) -> pl.DataFrame:
    """Order, cast and complete (with nulls) the columns of a frame by its declaration.

    Raises
    ------
    SchemaError
        For a column that is not declared or cannot be cast without loss.
    """
    unknown = [name for name in frame.columns if name not in declared]
    if unknown:
        raise SchemaError("frame", found=f"the undeclared columns {unknown}")
    exprs = [
        pl.col(name).cast(column.dtype)
        if name in frame.columns
        else pl.lit(None, dtype=column.dtype).alias(name)
        for name, column in declared.items()
    ]
    try:
        return frame.select(exprs)
    except pl.exceptions.PolarsError as problem:
        raise SchemaError("frame", found=str(problem).splitlines()[0]) from None


def check(frame: pl.DataFrame, declared: Mapping[str, Column], name: str = "frame") -> pl.DataFrame:
    """Return the frame if it follows its declaration.

    Checks column order, dtypes, forbidden nulls, and that no float is NaN or infinite: "unknown" is
    null and nothing else.

    Raises
    ------
    SchemaError
        Naming the first column at fault.
    """
    if list(frame.columns) != list(declared):
        raise SchemaError(name, found=f"columns {frame.columns}", expected=str(list(declared)))
    for column_name, column in declared.items():
        series = frame[column_name]
        if series.dtype != column.dtype:
            raise SchemaError(
                f"{name}.{column_name}", found=str(series.dtype), expected=str(column.dtype)
            )
        if not column.nullable and series.null_count():
            raise SchemaError(f"{name}.{column_name}", found="a null", expected="a value")
        if column.dtype == pl.Float64 and bool((~series.drop_nulls().is_finite()).any()):
            raise SchemaError(f"{name}.{column_name}", found="NaN or infinity", expected="null")
    return frame
