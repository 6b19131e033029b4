"""Stamps of inference-perf that are of no token: blank lines, the usage event, the role chunk."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["clean_stamps"]


def clean_stamps(
    stamps: Sequence[float], written: float | None, *, chat: bool
) -> tuple[list[float], set[str]]:
    """Leave only the stamps of tokens, and say what else stood there.

    Parameters
    ----------
    stamps : sequence of float
        `output_token_times` of one request, seconds, in order.
    written : float or None
        Its output tokens by another count.
    chat : bool
        Whether the stream may begin with a role chunk.

    Returns
    -------
    tuple
        The stamps, and the reasons: `token_twice` (0.5: a special token counted in every chunk),
        `blank_line` (0.1 and 0.2: each event stamped for its line and for the blank one after it),
        `usage_event`, `role_chunk`; `unlike` where the numbers stay apart.

    Examples
    --------
    >>> clean_stamps([1.0, 1.00001, 1.5, 1.50001, 2.0, 2.00001, 2.00002, 2.00003], 3, chat=False)[0]
    [1.0, 1.5, 2.0]
    """
    found = list(stamps)
    why: set[str] = set()
    if not written or not found:
        return found, why
    if len(found) == 2 * written and found[0::2] == found[1::2]:
        return found[0::2], {"token_twice"}
    if len(found) >= 2 * written and len(found) % 2 == 0:
        found = found[0::2]
        why.add("blank_line")
    surplus = len(found) - written
    # Of a single odd event in a chat, the shorter wait tells which end it stands at.
    role = chat and (surplus == 2 or (surplus == 1 and found[1] - found[0] < found[-1] - found[-2]))
    if role:
        found = found[1:]
        why.add("role_chunk")
    if len(found) - written == 1:
        found = found[:-1]
        why.add("usage_event")
    elif len(found) != written:
        why.add("unlike")
    return found, why
