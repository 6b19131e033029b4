"""The keys of `campaign.yaml` as types: an unknown key is an error, a missing fact is `None`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

__all__ = [
    "Arm",
    "Campaign",
    "ClientPlace",
    "ComparisonSpec",
    "CostSpec",
    "Design",
    "GpuDescription",
    "InputSpec",
    "ModelSpec",
    "Quality",
    "Retest",
    "Workload",
]


# Factors whose refusal an analyst may override (`comparisons.*.override`).
OVERRIDES = ("model", "gpu", "memory", "precision", "kv_dtype", "ttft_def", "e2e_def",
             "client_place", "sampling", "output_lengths", "prompt_mix", "chunking", "errors",
             "client_saturation")  # fmt: skip


# Keys of an arm that name files: logs, which belong to a workload, and what lies beside them.
LOG_ROLES = ("sweeps", "runs", "files", "prefill_probe")
BESIDE_ROLES = ("traces", "inventory", "server_metrics", "server_requests", "server_logs")


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


StringList = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Label = Annotated[str, BeforeValidator(lambda v: str(v) if isinstance(v, int | float) else v)]


class InputSpec(_Keys):
    """Where a pattern may stand, this mapping may stand too."""

    files: StringList = Field(
        description="glob patterns; `{level}`, `{rate}`, `{batch}`, `{repeat}`, `{card}` are read"
    )
    level: float | None = Field(
        None, gt=0, description="concurrency or rate of these runs, where neither log nor name says"
    )
    format: str | None = Field(None, description="dialect, when two accept a file")
    client_version: Label | None = Field(None, description="version of the tool that wrote the log")
    encoding: str | None = Field(None, description="such as `gb18030`, when it cannot be told")
    clock: Literal["epoch", "monotonic"] | None = Field(None, description="of an open-dialect log")
    t0_epoch_s: float | None = Field(None, description="epoch of a monotonic clock's zero")
    recover: bool = Field(False, description="read what is whole of a cut array")
    columns: dict[str, Any] | None = Field(None, description="foreign header -> {to, unit}")
    decimal: Literal[".", ","] = Field(".", description="decimal sign of an edited CSV")
    separator: str | None = Field(None, description="separator of an edited CSV")
    trace_query: str | None = Field(None, description="query string of a header-less trace")
    trace_start: str | None = Field(None, description="ISO start of a time-less trace")
    stages: tuple[int, ...] = Field((), description="requests a stage, inference-perf")

    @model_validator(mode="after")
    def _one_level(self) -> InputSpec:
        named = any(re.search(r"\{(level|rate|batch)\}", pattern) for pattern in self.files)
        if self.level is not None and named:
            raise ValueError("`level:`, or `{level}` in the pattern, not both")
        return self


def _by_workload(value: Any) -> Any:
    # Else a slip in a mapping with `files:` would be explained as a workload of that name.
    if isinstance(value, dict) and "files" in value:
        raise ValueError("patterns by workload")
    return value


Inputs = (
    InputSpec
    | StringList
    | Annotated[dict[str, InputSpec | StringList], BeforeValidator(_by_workload)]
)


class ModelSpec(_Keys):
    """The model served: shape for memory and roofline; `id` is checked against the logs."""

    name: Label = Field(description="label")
    id: str | None = Field(None, description="the id the logs carry; a contradiction is an error")
    revision: Label | None = Field(None, description="revision or commit")
    parameters: float | None = Field(None, gt=0, description="number of weights")
    active_parameters: float | None = Field(None, gt=0, description="of a MoE, a token")
    weight_bits: float | None = Field(None, gt=0, description="bits a weight")
    weight_bytes: float | None = Field(None, gt=0, description="bytes of all weights, if known")
    read_bytes_per_step: float | None = Field(
        None, gt=0, description="weight bytes a decode step reads"
    )
    layers: int | None = Field(None, gt=0, description="transformer layers")
    kv_heads: int | None = Field(None, gt=0, description="KV heads")
    head_dim: int | None = Field(None, gt=0, description="width of a head")
    kv_bits: float | None = Field(None, gt=0, description="bits a KV value")
    kv_bytes_per_token: float | None = Field(None, gt=0, description="overrides the shape (MLA)")
    tokenizer: str | None = Field(None, description="tokenizer id")


class Workload(_Keys):
    """Lengths, load and (optionally) its own SLO."""

    input_tokens: int | None = Field(None, gt=0, description="prompt tokens asked for")
    output_tokens: int | None = Field(None, gt=0, description="output tokens asked for")
    load: Literal["closed", "open", "offline"] | None = Field(None, description="kind of load")
    requests: int | None = Field(None, gt=0, description="planned requests a level and repeat")
    ignore_eos: bool | None = Field(None, description="was the length forced?")
    slo: dict[str, dict[str, float]] | None = Field(None, description="overrides the campaign's")


class GpuDescription(_Keys):
    """A card no catalogue knows (a modified one): only its own figures count."""

    name: str = Field(description="what it is")
    memory_gb: float | None = Field(None, gt=0)
    memory_bandwidth_gb_per_s: float | None = Field(None, gt=0)
    bf16_dense_tflops: float | None = Field(None, gt=0)
    fp8_dense_tflops: float | None = Field(None, gt=0)
    int8_dense_tops: float | None = Field(None, gt=0)
    tdp_w: float | None = Field(None, gt=0)


class ClientPlace(_Keys):
    """Where the load generator ran."""

    place: str | None = Field(None, description="same host, same rack, ...")
    rtt_s: float | None = Field(None, ge=0, description="round-trip time client to server")
    host_work_s: float | None = Field(None, ge=0, description="tokenising, retrieval, per request")


class Quality(_Keys):
    """A quality score measured elsewhere."""

    score: float
    n: int | None = Field(None, gt=0)
    source: str | None = None


class CostSpec(_Keys):
    """Prices of an arm; there are no built-in ones."""

    purchase: float | None = Field(None, ge=0, description="of all GPUs of the arm")
    host: float | None = Field(None, ge=0, description="of the host")
    operation_per_year: float | None = Field(None, ge=0)
    failure_ratio_per_year: float | None = Field(None, ge=0, le=1)
    pue: float | None = Field(None, ge=1)
    utilisation_ratio: float | None = Field(None, gt=0, le=1)
    years: float | None = Field(None, gt=0)


class Infeasible(_Keys):
    """A level that ran out of memory: it leaves no log and is an answer of its own."""

    level: float = Field(description="concurrency, rate or batch")
    workload: str | None = None
    reason: str = "out of memory"


class CampaignInfeasible(Infeasible):
    """The same at campaign level, with its arm."""

    arm: str


# As vLLM and SGLang name what a prefill step takes at most, and whether prompts are cut at all.
_CHUNK_KEYS = ("chunked_prefill_size", "max_num_batched_tokens")
_CHUNK_SWITCHES = ("chunked_prefill", "enable_chunked_prefill")


class Arm(_Keys):
    """One side of a comparison: hardware, engine, settings and files."""

    gpu: str | GpuDescription = Field(
        description="words that match one catalogue row, or a description"
    )
    gpus: int = Field(1, gt=0, description="number of GPUs")
    cards: StringList = Field(
        (), description="which physical cards; `{card}` in a pattern says which run was on which"
    )
    model: str | None = Field(None, description="key of `models`")
    tensor_parallel: int | None = Field(None, gt=0)
    pipeline_parallel: int | None = Field(None, gt=0)
    data_parallel: int | None = Field(None, gt=0)
    engine: Label | None = None
    engine_version: Label | None = None
    precision: Label | None = Field(None, description="weights, such as bf16")
    kv_dtype: Label | None = None
    host: Label | None = Field(None, description="which host; equal names are equal hosts")
    driver: Label | None = None
    cuda: Label | None = None
    kernels: Label | None = Field(None, description="attention and quantisation kernels")
    scheduler: dict[str, Any] = Field(
        default_factory=dict,
        description="scheduler limits; `max_num_batched_tokens` or `chunked_prefill_size` is what "
        "a prefill step takes at most (`chunked_prefill: false`: the whole prompt)",
    )
    sampling: dict[str, Any] = Field(default_factory=dict, description="sampling parameters")
    factors: dict[str, Any] = Field(
        default_factory=dict, description="anything else that may be a treatment"
    )
    server_starts: Literal["shared", "each"] = "shared"
    sweeps: Inputs | None = Field(None, description="one file a repeat, all levels in it")
    runs: Inputs | None = Field(None, description="independent runs, one a server start")
    files: Inputs | None = Field(None, description="a file a level and repeat, or appended files")
    prefill_probe: Inputs | None = Field(None, description="concurrency-1 runs over prompt lengths")
    traces: tuple[InputSpec | str, ...] = ()
    inventory: StringList = ()
    server_metrics: StringList = Field(
        (), description="metrics pages of server or host (Prometheus, AIPerf, vmstat, sar, pidstat)"
    )
    server_requests: StringList = Field(
        (), description="the server's own times of each request: spans, request logs"
    )
    server_logs: StringList = Field((), description="engine output or kernel log")
    price_per_hour: float | None = Field(None, ge=0, description="of the whole arm")
    time_zone: str | None = None
    client_version: Label | None = None
    encoding: str | None = None
    client: ClientPlace | None = None
    infeasible: tuple[Infeasible, ...] = ()
    quality: Quality | None = None
    cost: CostSpec | None = None
    probes: dict[str, float] = Field(default_factory=dict, description="measured limits of the arm")
    power_limit_w: float | None = Field(
        None, gt=0, description="of one GPU, as set; a trace's enforced limit goes before it"
    )
    supply_limit_w: float | None = Field(
        None, gt=0, description="what the node's supply may give to all GPUs of the arm (no host)"
    )

    @model_validator(mode="after")
    def _chunk_is_a_number(self) -> Arm:
        for key in _CHUNK_KEYS:
            value = self.scheduler.get(key)
            if value is not None and (type(value) is not int or value < -1):
                raise ValueError(f"a whole number of tokens under `scheduler.{key}`")
        return self

    @property
    def prefill_chunk_tokens(self) -> int | None:
        """Prompt tokens a prefill step takes at most; 0 the whole prompt, None not stated."""
        if False in (self.scheduler.get(key) for key in _CHUNK_SWITCHES):
            return 0
        stated = (self.scheduler.get(key) for key in _CHUNK_KEYS)
        size = next((value for value in stated if value is not None), None)
        return None if size is None else max(0, size)


class ComparisonSpec(_Keys):
    """Which two arms, and what the question is."""

    name: str | None = None
    baseline: str
    candidate: str | None = None
    against: StringList = ()
    treatment: StringList = Field(
        (), description="keys of the arms or of `factors` that are the question"
    )
    paired: bool = Field(False, description="pairs by repeat; needs ABBA order and one seed a pair")
    mode: Literal["same_settings", "each_tuned"] | None = None
    override: dict[str, str] = Field(
        default_factory=dict, description="refused factor -> reason to go on"
    )

    @model_validator(mode="after")
    def _one_form(self) -> ComparisonSpec:
        if (self.candidate is None) == (not self.against):
            raise ValueError("give either `candidate` or `against`")
        return self


class Retest(_Keys):
    """One arm against itself in earlier campaigns."""

    arm: str = Field(description="an arm of this campaign; the earlier ones have it by this name")
    earlier: StringList = Field(min_length=1, description="their campaign files, oldest first")
    treatment: StringList = Field((), description="what was changed since, if that is the question")


class Design(_Keys):
    """What was fixed before the data."""

    runs_per_arm: int | None = Field(None, gt=0)
    paired: bool = False
    order: Literal["AABB", "ABAB", "ABBA", "random", "simultaneous"] | None = None
    exclude_first: bool = Field(False, description="drop the first (cold) run of every arm")
    two_look: bool = False


class NoiseFloor(_Keys):
    """SD of the log run statistic from an A/A campaign."""

    campaign: str
    runs: int = Field(ge=2)
    log_sd: dict[str, float] = Field(description="metric -> SD")


class Campaign(_Keys):
    """A validated campaign; `root` is its folder, `path` the file. Made by `read_campaign`.

    The arms of `retest` entries are among `arms` once it is read, named `<arm>@<campaign>`.
    """

    campaign: Label = Field(description="short name, a folder name of the reports")
    title: Label | None = None
    simulated: bool = Field(False, description="true marks every title: not measured on a GPU")
    time_zone: str | None = Field(None, description="of zone-less trace time stamps (IANA)")
    model: ModelSpec | None = None
    models: dict[str, ModelSpec] = Field(default_factory=dict)
    workload: Workload | None = None
    workloads: dict[str, Workload] = Field(default_factory=dict)
    slo: dict[str, dict[str, float]] = Field(default_factory=dict)
    arms: dict[str, Arm]
    comparisons: tuple[ComparisonSpec, ...] | Literal["all"] = "all"
    retest: tuple[Retest, ...] = Field((), description="arms against their own earlier campaigns")
    design: Design = Design()
    mode: Literal["same_settings", "each_tuned"] = "same_settings"
    margins: dict[str, float] = Field(
        default_factory=dict, description="metric or metric.statistic -> ratio"
    )
    primary: tuple[str, ...] = Field(
        ("tpot_s.p50", "ttft_s.p50", "output_tokens_per_s.value"), description="headline metrics"
    )
    infeasible: tuple[CampaignInfeasible, ...] = ()
    noise_floor: NoiseFloor | None = None
    electricity_per_kwh: float | None = Field(None, ge=0)
    currency: str | None = None
    root: Path = Field(default=Path(), exclude=True)
    path: Path = Field(default=Path(), exclude=True)
    # The files it was read from, its own first: what rests on it rests on all of them.
    read_from: tuple[Path, ...] = Field(default=(), exclude=True)

    def all_workloads(self) -> dict[str, Workload]:
        """Workloads by name; a single unnamed one is called `main`."""
        return self.workloads or {"main": self.workload or Workload()}

    def model_of(self, arm: str) -> ModelSpec | None:
        """Return the model an arm serves."""
        key = self.arms[arm].model
        return self.models[key] if key else (self.model or next(iter(self.models.values()), None))

    def slo_of(self, workload: str) -> dict[str, dict[str, float]]:
        """Return the SLO of a workload: its own, else the campaign's."""
        return self.all_workloads()[workload].slo or self.slo
