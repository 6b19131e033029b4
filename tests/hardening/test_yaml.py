"""Hostile campaign files: refused in one line, quickly, with the line or key."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpuverdict.campaign import read_campaign
from gpuverdict.errors import CampaignError

GOOD = """\
campaign: c
model: {name: m}
workload: {load: closed}
arms:
  a: {gpu: H200 SXM, precision: bf16, files: 'a/*.json'}
  b: {gpu: H200 SXM, precision: bf16, files: 'b/*.json'}
comparisons: [{name: ab, baseline: a, candidate: b}]
"""

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (BOMB, "aliases"),
        ("a: &a [*a]\n", "alias"),
        ("campaign: " + "[" * 5000 + "]" * 5000, "campaign.yaml"),
        ("campaign: " + "{a: " * 3000 + "1" + "}" * 3000, "campaign.yaml"),
        ("campaign: " + "x" * 2_000_000, "bytes"),
        (GOOD + "campaign: d\n", "campaign"),
        ("!!python/object/apply:os.system ['touch /tmp/gpuverdict-pwned']", "campaign.yaml"),
        (GOOD.replace("campaign: c", "campaign: !!python/name:os.system"), "campaign.yaml"),
        (GOOD.replace("campaign: c", "campaign: !include /etc/passwd"), "campaign.yaml"),
        (GOOD.replace("campaign: c", "campaign: ../../up"), "campaign"),
        (GOOD.replace("campaign: c", "campaign: .."), "campaign"),
        (GOOD.replace("campaign: c", "campaign: c/d"), "campaign"),
        (GOOD.replace("name: ab", "name: ../ab"), "comparisons"),
        (GOOD.replace("name: ab", "name: '=cmd()'"), "comparisons"),
        (GOOD.replace("name: ab", 'name: "a\\u202eb"'), "comparisons"),
        (GOOD.replace("name: ab", 'name: "a\\x1b[31mb"'), "comparisons"),
        (GOOD.replace("name: ab", "name: " + "x" * 500), "comparisons"),
        (GOOD.replace("  a: {", "  '<script>': {"), "arms"),
        ("\x00\x01\x02", "campaign.yaml"),
        ("- a\n- b\n", "mapping"),
        ("", "mapping"),
    ],
)
def test_refused_in_one_line(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(text, encoding="utf-8")
    began = time.process_time()
    with pytest.raises(CampaignError) as caught:
        read_campaign(path)
    assert time.process_time() - began < 20
    line = str(caught.value)
    assert word in line
    assert "\n" not in line
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert len(line) < 1000
    assert not Path("/tmp/gpuverdict-pwned").exists()


def test_an_unquoted_pattern_in_a_list_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(GOOD.replace("files: 'a/*.json'", "files: [a/c{level}_r{repeat}.json]"))
    with pytest.raises(CampaignError, match="in quotes"):
        read_campaign(path)
