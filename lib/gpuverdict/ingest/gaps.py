"""Gap lists between streamed events, flat, and what in them is no gap between two tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuverdict.errors import Caution, LogFormatError
from gpuverdict.ingest.columns import FloatArray
from gpuverdict.text import caution

__all__ = ["BoolArray", "Gaps", "chunk_cautions", "list_offsets", "split_gaps"]

BoolArray = npt.NDArray[np.bool_]

# More tokens a gap than this are several tokens a chunk, and not a merged event here and there.
_ONE_TOKEN = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The gap lists of all requests, flat: request i owns `flat_s[offsets[i]:offsets[i+1]]`."""

    flat_s: FloatArray
    offsets: npt.NDArray[np.int64]
    kind: str
    tokens_per_event: list[list[int] | None] | None = None

    @classmethod
    def from_lists(cls, lists: Sequence[Any], kind: str, where: str) -> Gaps:
        """Flatten a list of lists of seconds, null for none.

        Raises
        ------
        LogFormatError
            For an entry that is neither a list of numbers nor null.
        """
        try:
            rows = [row if row is not None else () for row in lists]
            lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
            total = int(lengths.sum())
            flat = np.fromiter(chain.from_iterable(rows), dtype=np.float64, count=total)
        except (TypeError, ValueError):
            raise LogFormatError(
                where, found="a gap list that holds something else", expected="lists of numbers"
            ) from None
        return cls(flat_s=flat, offsets=list_offsets(lengths), kind=kind)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of gaps of each request."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> npt.NDArray[np.int64]:
        """The request each gap belongs to."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)

    @property
    def sums_s(self) -> FloatArray:
        """Sum of the gaps of each request, 0 for none."""
        sums = np.zeros(len(self.offsets) - 1)
        filled = self.lengths > 0
        if filled.any():
            sums[filled] = np.add.reduceat(self.flat_s, self.offsets[:-1][filled])
        return sums

    def nth_s(self, position: int) -> FloatArray:
        """Gap at a position (0 the first, -1 the last) of each request, NaN where there is none."""
        found = np.full(len(self.offsets) - 1, np.nan)
        filled = self.lengths > (position if position >= 0 else -position - 1)
        ends = self.offsets[:-1] if position >= 0 else self.offsets[1:]
        found[filled] = self.flat_s[ends[filled] + position]
        return found

    def without_first(self, rows: BoolArray) -> Gaps:
        """Drop the first gap of the marked requests."""
        rows = rows & (self.lengths > 0)
        flat = np.delete(self.flat_s, self.offsets[:-1][rows])
        return Gaps(flat_s=flat, offsets=list_offsets(self.lengths - rows), kind=self.kind)

    def without_last(self, rows: BoolArray) -> Gaps:
        """Drop the last gap of the marked requests."""
        rows = rows & (self.lengths > 0)
        flat = np.delete(self.flat_s, self.offsets[1:][rows] - 1)
        return Gaps(flat_s=flat, offsets=list_offsets(self.lengths - rows), kind=self.kind)

    def cleared(self, rows: BoolArray) -> Gaps:
        """Empty the lists of the marked requests."""
        if not (rows & (self.lengths > 0)).any():
            return self
        keep = np.repeat(~rows, self.lengths)
        return Gaps(
            flat_s=self.flat_s[keep],
            offsets=list_offsets(np.where(rows, 0, self.lengths)),
            kind=self.kind,
            tokens_per_event=self.tokens_per_event,
        )


def list_offsets(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Offsets of lists of these lengths in their flat form."""
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def split_gaps(
    gaps: Gaps, ttft: Any, output: Any, *, chat: bool
) -> tuple[Gaps, Any, dict[str, int], dict[str, str]]:
    """Take out of the gap lists what is no gap between two tokens.

    Two things are found there: the TTFT itself as first entry (told by its value), and, on the chat
    endpoint, the wait between the empty role chunk and the first content, in which case the first
    token is the second event and TTFT grows by that wait.

    Returns
    -------
    tuple
        The gaps, the TTFT, counts by reason, and the explanations of the tool's own figures.
    """
    lengths = gaps.lengths
    explained = {"tpot_s": "reported_past_last_token", "e2e_s": "reported_past_last_token"}
    firsts = gaps.nth_s(0)
    # A cut stream stops anywhere: its list says nothing of what the writer puts first.
    filled = (lengths > 0) & (ttft > 0) & (output > 0)
    if not filled.any():
        return gaps, ttft, {}, explained
    holds_ttft = filled & _begins_with_ttft(gaps, ttft, output)
    if holds_ttft.any():
        explained = dict.fromkeys(("tpot_s", "e2e_s", "itl_s"), "reported_with_ttft_in_gaps")
        counted = {"ttft_in_gaps": int(holds_ttft.sum())}
        return gaps.without_first(holds_ttft), ttft, counted, explained
    if not chat:
        return gaps, ttft, {}, explained
    rest = gaps.without_first(filled).flat_s
    typical = float(np.median(rest)) if rest.size else math.inf
    with np.errstate(invalid="ignore"):
        role = filled & ((lengths == output) | (firsts < 0.1 * typical))
    judged = filled & (lengths > 1)
    if judged.any() and role[judged].mean() >= 0.9:
        moved = np.where(role, ttft + np.nan_to_num(firsts), ttft)
        explained |= dict.fromkeys(("ttft_s", "itl_s", "tpot_s"), "reported_with_role_chunk")
        return gaps.without_first(role), moved, {"role_chunk": int(role.sum())}, explained
    return gaps, ttft, {}, explained


def _begins_with_ttft(gaps: Gaps, ttft: Any, output: Any) -> Any:
    """Mark the requests whose gap list begins with the TTFT, by value and only file by file.

    A list of one entry a token whose first is the TTFT tells by itself. In a shorter list (several
    tokens a chunk) an equal first entry may be chance, as with constant times: there it counts
    only where it is exact and unlike the second.
    """
    firsts, lengths = gaps.nth_s(0), gaps.lengths
    filled = (lengths > 0) & (ttft > 0) & (output > 0)
    seconds = gaps.nth_s(1)
    with np.errstate(invalid="ignore"):
        apart = np.abs(firsts - ttft)
        one_a_token = filled & (lengths == output) & (apart <= 1e-3)
        exact = filled & (lengths < output - 1) & (apart <= 1e-9)
        exact &= np.abs(seconds - firsts) > 0.1 * firsts
    if filled.any() and one_a_token[filled].mean() >= 0.9:
        return one_a_token
    several = filled & (lengths > 1)
    if several.sum() > 1 and exact[several].mean() >= 0.9:
        return exact
    return np.zeros(len(ttft), dtype=bool)


def chunk_cautions(gaps: Gaps, output: Any, among: BoolArray) -> list[Caution]:
    """Say how many tokens a chunk holds where it is more than one.

    Parameters
    ----------
    gaps : Gaps
    output : array
        Output tokens of each request.
    among : array of bool
        The requests that count.
    """
    output = np.asarray(output, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        counted = among & (gaps.lengths > 0) & (output > 1)
    if not counted.any():
        return []
    per_chunk = float((output[counted] - 1).sum() / gaps.lengths[counted].sum())
    if per_chunk <= _ONE_TOKEN:
        return []
    return [caution("several_tokens_a_chunk", tokens_per_chunk=per_chunk)]
