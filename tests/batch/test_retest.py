"""`retest`: an arm against itself in earlier campaigns."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path

import pytest
from tests.campaigns import RUN_EFFECTS, arm, open_verdict, write_arm, write_campaign

from gpuverdict.campaign import read_campaign
from gpuverdict.errors import CampaignError
from gpuverdict.report.fingerprint import fingerprints, input_digests
from gpuverdict.tables.index import index_html


def month(folder: Path, name: str, effect: float = 0.0, **keys: object) -> Path:
    """A campaign of one card, `effect` slower than the first."""
    folder.mkdir()
    # Never the same bytes: a run that is there twice is read once.
    effect += 1e-5 * (zlib.crc32(folder.name.encode()) % 9)
    write_arm(folder, "card", effect=effect, repeats=5, noise=0.005)
    entry = arm("card", cards=["card"])
    return write_campaign(folder, {"card": entry}, campaign=name, comparisons=[], **keys)


def again(folder: Path, earlier: list[str], effect: float = 0.0, **keys: object) -> Path:
    path = month(folder, "now", effect, **keys)
    content = json.loads(path.read_text())
    content["retest"] = [{"arm": "card", "earlier": earlier}]
    path.write_text(json.dumps(content))
    return path


def tpot_word(campaign: Path, name: str) -> tuple[str, float]:
    found = open_verdict(campaign, name).verdict
    cell = next(c for c in found.cells if c.key.metric == "tpot_s" and c.key.statistic == "p50")
    assert cell.comparison.ratio is not None
    return cell.verdict, cell.comparison.ratio


def test_an_unchanged_card_is_equivalent_and_a_slower_one_is_slower(tmp_path: Path) -> None:
    month(tmp_path / "march", "march")
    same = again(tmp_path / "same", ["../march"])
    assert tpot_word(same, "card-since-march")[0] == "equivalent"
    slower = again(tmp_path / "slower", ["../march/campaign.yaml"], effect=0.08)
    word, ratio = tpot_word(slower, "card-since-march")
    # Known beforehand: exp(0.08), with the scatter of requests inside five runs.
    assert word == "slower"
    assert ratio == pytest.approx(math.exp(0.08), rel=0.004)


def test_another_model_then_is_refused_and_another_length_is_an_error(tmp_path: Path) -> None:
    month(tmp_path / "march", "march", model={"name": "other", "parameters": 8e9,
                                              "weight_bits": 16})  # fmt: skip
    path = again(tmp_path / "now", ["../march"])
    found = open_verdict(path, "card-since-march").verdict
    assert {c.verdict for c in found.cells} == {"not comparable"}
    month(tmp_path / "may", "may", workload={"load": "closed", "input_tokens": 512})
    path = again(tmp_path / "later", ["../may"],
                 workload={"load": "closed", "input_tokens": 256})  # fmt: skip
    with pytest.raises(CampaignError, match="input_tokens 512 in may and 256 here"):
        read_campaign(path)


@pytest.mark.parametrize(
    ("earlier", "said"),
    [
        (["../gone"], "no such file"),
        (["."], "this campaign itself"),
        (["../march", "../march"], "the campaign 'march' twice"),
        (["../empty"], "one of other"),
    ],
)
def test_what_cannot_be_retested_is_said_in_one_line(
    tmp_path: Path, earlier: list[str], said: str
) -> None:
    month(tmp_path / "march", "march")
    (tmp_path / "empty").mkdir()
    write_campaign(tmp_path / "empty", {"other": arm("other")}, comparisons=[])
    with pytest.raises(CampaignError, match=said) as problem:
        read_campaign(again(tmp_path / "now", earlier))
    assert "\n" not in str(problem.value)


def test_what_an_earlier_campaign_retests_itself_is_not_followed(tmp_path: Path) -> None:
    oldest = month(tmp_path / "march", "march")
    middle = again(tmp_path / "may", ["../march"])
    path = again(tmp_path / "now", ["../may", "../march"])
    for campaign, name, others in ((middle, "may", ["../now"]), (oldest, "march", ["../gone"])):
        content = json.loads(campaign.read_text())
        content["campaign"], content["retest"] = name, [{"arm": "card", "earlier": others}]
        campaign.write_text(json.dumps(content))
    found = read_campaign(path)
    assert list(found.arms) == ["card", "card@may", "card@march"]
    # Each file once, by whichever way it was reached.
    assert len({p.resolve() for p in found.read_from}) == len(found.read_from) == 3


def test_a_slip_in_an_earlier_campaign_is_looked_for_there(tmp_path: Path) -> None:
    march = month(tmp_path / "march", "march")
    march.write_text(json.dumps(json.loads(march.read_text()) | {"slo": 3}))
    with pytest.raises(CampaignError, match=r"^\.\./march: campaign\.yaml: slo: found 3"):
        read_campaign(again(tmp_path / "now", ["../march"]))


def test_the_earlier_campaign_file_counts_for_the_report(tmp_path: Path) -> None:
    march = month(tmp_path / "march", "march")
    path = again(tmp_path / "now", ["../march"])

    def mark() -> str:
        campaign = read_campaign(path)
        return fingerprints(campaign, campaign.comparisons, input_digests(campaign), "en")[
            "card-since-march"
        ]

    before = mark()
    assert mark() == before
    march.write_text(march.read_text().replace('"driver": "580"', '"driver": "550"'))
    assert mark() != before


@pytest.mark.parametrize(
    ("effects", "said"),
    [
        ((0, 0, 0, 0), "too few for a series"),
        ((0, 0.001, -0.001, 0, 0.1, 0.101, 0.1, 0.099), "Changed by +10.5 % from m4 on."),
        ((0, 0.001, -0.001, 0, 0.001, 0, -0.001, 0), "No change of 3 % or more in 8 campaigns."),
        ((0, 0.1, -0.1, 0.05, 0.15, -0.05, 0.1, 0), "Unstable"),
    ],
)
def test_the_index_says_since_when_an_arm_changed(
    tmp_path: Path, effects: tuple[float, ...], said: str
) -> None:
    for at, effect in enumerate(effects[:-1]):
        month(tmp_path / f"m{at}", f"m{at}", effect)
    earlier = [f"../m{at}" for at in range(len(effects) - 1)]
    path = again(tmp_path / "now", earlier, effects[-1])
    opened = open_verdict(path, "card-since-m0")
    page = index_html(opened.measured, opened.summary, [])
    table = page[page.index("h-history") :]
    row = table[table.index("TPOT") :]
    row = row[: row.index("</tr>")]
    assert said in row
    # The first value by hand: 10 ms a token, over the mean of the five run effects.
    assert f"{10 * math.exp(sum(RUN_EFFECTS) / 5 + effects[0]):.1f}" in row
