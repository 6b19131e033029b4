"""Whatever stands in a campaign file is read the same in any key order, or refused in one line."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuverdict.campaign import arm_inputs, read_campaign
from gpuverdict.errors import CampaignError

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

VALID: dict[str, Any] = {
    "campaign": "c",
    "model": {"name": "m", "parameters": 7e9, "weight_bits": 16},
    "workload": {"load": "closed", "input_tokens": 512},
    "slo": {"ttft_s": {"p95": 0.5}},
    "design": {"runs_per_arm": 5},
    "arms": {
        "a": {"gpu": "H200 SXM", "precision": "bf16", "files": "a/c{level}_r{repeat}.json",
              "client": {"place": "here", "rtt_s": 0.0}, "factors": {"x": 1}},
        "b": {"gpu": "H100 SXM", "precision": "bf16", "sweeps": ["b/*.json"],
              "quality": {"score": 1.0}, "infeasible": [{"level": 64}]},
    },
    "comparisons": [{"name": "n", "baseline": "a", "candidate": "b", "treatment": ["gpu"]}],
}  # fmt: skip

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=True),
    st.text(max_size=20),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip


def read(content: str | bytes) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "campaign.yaml"
        if isinstance(content, str):
            content = content.encode("utf-8", errors="surrogatepass")
        path.write_bytes(content)
        campaign = read_campaign(path)
        listed = {arm: len(arm_inputs(campaign, arm)[0]) for arm in campaign.arms}
        return campaign.model_dump(exclude={"root", "path"}), listed


def refusal(content: str | bytes) -> str | None:
    """The one line of a refusal, None where the file is accepted; anything else is a failure."""
    try:
        read(content)
    except CampaignError as problem:
        return str(problem)
    return None


def is_one_line(line: str | None) -> bool:
    return line is None or ("\n" not in line and line.isprintable() and len(line) < 2000)


def shuffled(value: Any, draw: Any) -> Any:
    if isinstance(value, dict):
        keys = draw(st.permutations(sorted(value)))
        return {key: shuffled(value[key], draw) for key in keys}
    return value


@QUICK
@given(st.data())
def test_key_order_changes_nothing(data: st.DataObject) -> None:
    mixed = shuffled(VALID, data.draw)
    one, two = read(json.dumps(VALID)), read(json.dumps(mixed))
    assert one == two


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    if isinstance(value, dict):
        for key, held in value.items():
            found += places(held, (*at, key))
    return found


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    return {**value, place[0]: replaced(value[place[0]], place[1:], new)}


@QUICK
@given(st.sampled_from(places(VALID)), values)
def test_any_value_anywhere_is_read_or_refused(place: tuple[Any, ...], new: Any) -> None:
    assert is_one_line(refusal(json.dumps(replaced(VALID, place, new))))


@QUICK
@given(st.sampled_from(places(VALID)), st.text(min_size=1, max_size=12), values)
def test_an_unknown_key_is_always_refused(place: tuple[Any, ...], key: str, new: Any) -> None:
    target = VALID
    for part in place:
        target = target[part]
    if not isinstance(target, dict) or place[-1] in ("slo", "ttft_s", "arms", "factors"):
        return  # there any name may stand
    line = refusal(json.dumps(replaced(VALID, place, {**target, "?" + key: new})))
    assert line is not None
    assert is_one_line(line)


@QUICK
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_or_bytes_are_read_or_refused(content: str | bytes) -> None:
    assert is_one_line(refusal(content))


@QUICK
@given(st.text(alphabet="abc{}[]*?.\\0123levrp", max_size=25))
def test_any_pattern_matches_or_is_refused(pattern: str) -> None:
    assert is_one_line(refusal(json.dumps(replaced(VALID, ("arms", "a", "files"), pattern))))


@QUICK
@given(st.text(alphabet="ab[]!?*-^&c1", min_size=1, max_size=6))
def test_a_pattern_without_fields_finds_what_a_glob_finds(
    tmp_path_factory: pytest.TempPathFactory, pattern: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "globbed"
    if not folder.exists():
        folder.mkdir()
        for name in ("[", "a", "b", "-", "?", "[?", "a]", "ab", "[a]", "^", "!", "c1", "x&"):
            (folder / name).touch()
    try:
        expected = {path for path in folder.glob(pattern) if path.is_file()}
    except (ValueError, NotImplementedError):
        return
    content = replaced(VALID, ("arms", "a", "files"), pattern)
    (folder.parent / "globbed.json").write_text(json.dumps(content), encoding="utf-8")
    campaign = read_campaign(folder.parent / "globbed.json")
    moved = campaign.model_copy(update={"root": folder})
    assert {file.path for file in arm_inputs(moved, "a")[0] if file.role == "files"} == expected
