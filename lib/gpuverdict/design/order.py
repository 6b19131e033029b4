"""In which order the runs of two arms were made."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

from gpuverdict.summary.campaign import RunFacts

__all__ = ["run_order"]


def run_order(
    baseline: Sequence[RunFacts], candidate: Sequence[RunFacts]
) -> Literal["AABB", "ABAB", "ABBA", "simultaneous", "mixed"] | None:
    """Say in which order the runs of two arms were made; None where the logs have no epoch.

    `AABB` means that one arm ended before the other began: a drift of the laboratory between them
    would read as a difference. The levels of one pass over a server are one run here.
    """
    passes: dict[tuple[str, str], list[float]] = {}
    for letter, arm in (("A", baseline), ("B", candidate)):
        for fact in arm:
            epoch = fact.run.stored.info.get("t0_epoch_s")
            if epoch is None:
                return None
            begin = float(epoch)
            end = begin + float(fact.run.stored.info.get("duration_s") or 0.0)
            # A file a level makes a sweep a file, but the levels of one server start are one pass.
            start, shared = fact.run.server_start_id, f"{fact.run.arm}/shared"
            key = fact.run.sweep_id if start == shared else start
            held = passes.setdefault((letter, key), [begin, end])
            held[:] = min(held[0], begin), max(held[1], end)
    spans = sorted((begin, end, letter) for (letter, _), (begin, end) in passes.items())
    letters = "".join(letter for _, _, letter in spans)
    if len(set(letters)) < 2:
        return None
    overlapping = [one[2] != two[2] and two[0] < one[1] for one, two in itertools.pairwise(spans)]
    if sum(overlapping) >= len(spans) / 2:
        return "simultaneous"
    if len(letters) > 2 and letters.lstrip(letters[0]).strip(letters[-1]) == "":
        return "AABB"
    pairs = [letters[i : i + 2] for i in range(0, len(letters) - 1, 2)]
    if len(letters) % 2 == 0 and set(pairs) <= {"AB", "BA"}:
        return "ABAB" if len(set(pairs)) == 1 else "ABBA"
    return "mixed"
