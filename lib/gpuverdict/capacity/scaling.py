"""What several cards gain over one: efficiency, and the share that goes into communication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuverdict.errors import Caution, ParameterError
from gpuverdict.stats import Comparison, compare_arms
from gpuverdict.text import caution
from gpuverdict.units import Estimate

__all__ = ["Scaling", "scaling_efficiency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Speed-up of n cards over m, its efficiency, and the communication share it leaves.

    `communication_ratio` is the part of the larger system's time that perfect scaling would not
    need; it holds communication, imbalance and what does not split, and is None where the larger
    system scales better than perfectly. `comparison` holds the test.
    """

    speedup: Estimate
    efficiency_ratio: Estimate
    communication_ratio: Estimate
    comparison: Comparison
    topology: str
    cautions: tuple[Caution, ...] = ()

    def __str__(self) -> str:
        return f"speed-up {self.speedup}, efficiency {self.efficiency_ratio} ({self.topology})"


def scaling_efficiency(
    one: Sequence[float],
    many: Sequence[float],
    *,
    metric: str,
    statistic: str = "p50",
    gpus_one: int = 1,
    gpus_many: int = 2,
    kind: str = "tensor parallel",
    links: str = "",
    confidence: float = 0.95,
) -> Scaling:
    """Say what `gpus_many` cards gain over `gpus_one`, with an interval over runs.

    Parameters
    ----------
    one, many : sequence of float
        Run values of the small and the large system at the same level: a time or a rate.
    metric, statistic : str
        Decides which direction is a gain. Prefill and decode are told apart by the metric.
    kind : str
        `tensor parallel`, `pipeline parallel` or `replicas`.
    links : str
        How the cards are connected, as the topology says (`PHB`, `NV12`).

    Examples
    --------
    >>> s = scaling_efficiency([10.0, 10.1, 9.9], [6.2, 6.3, 6.25], metric="tpot_s")
    >>> round(s.efficiency_ratio.value, 2), round(s.communication_ratio.value, 2)
    (0.8, 0.2)
    """
    if not 0 < gpus_one < gpus_many:
        raise ParameterError(
            "gpus", found=f"{gpus_one} and {gpus_many}", expected="more cards in the second system"
        )
    c = compare_arms(one, many, metric=metric, statistic=statistic, confidence=confidence)
    rate = c.better == "higher"
    said: list[Caution] = [x for x in c.cautions if not x.code.startswith("undecided")]
    if not links:
        said.append(caution("topology_unknown"))
    times = gpus_many / gpus_one

    def gain(factor: float) -> Estimate:
        if c.ratio is None:
            return Estimate(value=None, cautions=tuple(said))
        ends = [
            None if end is None else (end if rate else 1 / end) / factor for end in (c.low, c.high)
        ]
        low, high = ends if rate else ends[::-1]
        return Estimate(
            value=(c.ratio if rate else 1 / c.ratio) / factor,
            low=low,
            high=high,
            confidence=confidence if low is not None and high is not None else None,
            n=min(c.n_baseline, c.n_candidate),
        )

    efficiency = gain(times)
    lost = Estimate(value=None)
    if efficiency.value is not None and efficiency.value < 1:
        lost = Estimate(
            value=1 - efficiency.value,
            low=None if efficiency.high is None else max(0.0, 1 - efficiency.high),
            high=None if efficiency.low is None else 1 - efficiency.low,
            confidence=efficiency.confidence,
            n=efficiency.n,
        )
    elif efficiency.low is not None and efficiency.low > 1:
        said.append(caution("better_than_perfect_scaling"))
    return Scaling(
        speedup=gain(1.0),
        efficiency_ratio=efficiency,
        communication_ratio=lost,
        comparison=c,
        topology=f"{kind}, {links or 'links unknown'}",
        cautions=tuple(said),
    )
