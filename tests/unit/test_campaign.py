"""`campaign.yaml`: what is accepted, and the one line a mistake gives."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from gpuverdict.campaign import Campaign, ComparisonSpec, arm_inputs, key_table, read_campaign
from gpuverdict.errors import CampaignError

BASE = """
campaign: c
model: {name: m, parameters: 7e9, weight_bits: 16}
workload: {load: closed}
arms:
  a: {gpu: H200 SXM, precision: bf16, files: "a/c{level}_r{repeat}.json"}
  b: {gpu: H200 SXM, precision: bf16, files: "b/c{level}_r{repeat}.json", factors: {graphs: false}}
"""


def read(folder: Path, text: str = BASE) -> Campaign:
    path = folder / "campaign.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return read_campaign(path)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(CampaignError) as caught:
        read(folder, text)
    line = str(caught.value)
    assert "\n" not in line
    assert "campaign.yaml" in line
    return line


# ------------------------------------------------------------------ accepted


def test_minimal_campaign_has_the_defaults_of_the_design(tmp_path: Path) -> None:
    campaign = read(tmp_path)
    assert campaign.root == tmp_path
    assert campaign.primary == ("tpot_s.p50", "ttft_s.p50", "output_tokens_per_s.value")
    assert campaign.arms["a"].server_starts == "shared"
    assert list(campaign.all_workloads()) == ["main"]
    assert [str(s.name) for s in specs(campaign)] == ["b-vs-a"]
    assert campaign.mode == "same_settings"


def specs(campaign: Campaign) -> list[ComparisonSpec]:
    return [s for s in campaign.comparisons if isinstance(s, ComparisonSpec)]


def test_a_folder_stands_for_its_campaign_file(tmp_path: Path) -> None:
    read(tmp_path)
    assert read_campaign(tmp_path).campaign == "c"


@pytest.mark.parametrize(
    ("written", "read_as"),
    [("NO", "NO"), ("yes", "yes"), ("off", "off"), ("0123", "0123"), ("1:30", "1:30"),
     ("0.9.0", "0.9.0"), ("12", "12"), ("'01'", "01")],
)  # fmt: skip
def test_text_stays_text_as_yaml_1_2_has_it(tmp_path: Path, written: str, read_as: str) -> None:
    text = BASE.replace(
        'precision: bf16, files: "a/', f'precision: bf16, host: {written}, files: "a/'
    )
    assert read(tmp_path, text).arms["a"].host == read_as


def test_true_and_numbers_are_what_yaml_1_2_says(tmp_path: Path) -> None:
    campaign = read(tmp_path, BASE + "simulated: true\nmargins: {tpot_s: 2e-2, ttft_s.p95: 0.08}\n")
    assert campaign.simulated is True
    assert campaign.margins == {"tpot_s": 0.02, "ttft_s.p95": 0.08}
    assert campaign.arms["b"].factors == {"graphs": False}


def test_byte_order_mark_and_chinese_are_read(tmp_path: Path) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + (BASE + "title: 两张卡\n").encode())
    assert read_campaign(path).title == "两张卡"


def test_all_pairs(tmp_path: Path) -> None:
    text = BASE + '  c: {gpu: H100 SXM, precision: bf16, files: "c/*.json"}\ncomparisons: all\n'
    pairs = [(s.baseline, s.candidate) for s in specs(read(tmp_path, text))]
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]


def test_against_expands_to_one_comparison_each(tmp_path: Path) -> None:
    text = BASE + textwrap.dedent("""\
      c: {gpu: H100 SXM, precision: bf16, files: "c/*.json"}
    comparisons:
      - {name: n, baseline: a, against: [b, c]}
      - {baseline: b, candidate: c}
    """).replace("  c:", "  c:", 1)
    found = specs(read(tmp_path, text))
    assert [(s.name, s.baseline, s.candidate) for s in found] == [
        ("n-b", "a", "b"), ("n-c", "a", "c"), ("c-vs-b", "b", "c")
    ]  # fmt: skip


def test_several_workloads_and_models(tmp_path: Path) -> None:
    campaign = read(
        tmp_path,
        """
        campaign: c
        models: {small: {name: s, weight_bits: 16}, big: {name: b, weight_bits: 8}}
        workloads: {chat: {load: closed, slo: {ttft_s: {p95: 0.2}}}, long: {load: open}}
        slo: {ttft_s: {p95: 1.0}}
        arms:
          a:
            gpu: H200 SXM
            model: small
            sweeps: {chat: a/chat*.json, long: [a/l1.json, a/l2.json]}
          b: {gpu: H200 SXM, model: big, files: {chat: {files: b/c.json, client_version: 0.32}}}
        """,
    )
    assert campaign.model_of("b").name == "b"  # type: ignore[union-attr]
    assert campaign.slo_of("chat") == {"ttft_s": {"p95": 0.2}}
    assert campaign.slo_of("long") == {"ttft_s": {"p95": 1.0}}
    for name in ("chat1", "chat10", "chat2", "l1", "l2"):
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "a" / f"{name}.json").touch()
    found, missing = arm_inputs(campaign, "a")
    assert [(f.workload, f.path.name) for f in found] == [
        ("chat", "chat1.json"), ("chat", "chat2.json"), ("chat", "chat10.json"),
        ("long", "l1.json"), ("long", "l2.json"),
    ]  # fmt: skip
    assert not missing
    _, missing = arm_inputs(campaign, "b")
    assert "b/c.json" in str(missing[0])


# ------------------------------------------------------------------ refused, in one line

MISTAKES: dict[str, tuple[str, list[str]]] = {
    "unknown key": (BASE.replace("workload:", "worklaod:"), ["'worklaod'", "'workload'"]),
    "unknown key of an arm": (
        BASE.replace("factors:", "factrs:"), ["arms.b.factrs", "'factrs'", "'factors'"]),
    "unknown key of the model": (
        BASE.replace("weight_bits", "weigth_bits"), ["model.weigth_bits", "'weight_bits'"]),
    "unknown key without a near one": (BASE + "zzzzqqq: 1\n", ["'zzzzqqq'", "one of"]),
    "reserved key": (BASE + "root: /\n", ["root", "reserved"]),
    "no arms": ("campaign: c\nmodel: {name: m, weight_bits: 16}\n", ["arms", "nothing"]),
    "no name": (BASE.replace("campaign: c", ""), ["campaign", "nothing"]),
    "no model": (BASE.replace("model: {name: m, parameters: 7e9, weight_bits: 16}", ""),
                 ["model", "`model:` or `models:`"]),
    "model and models": (BASE + "models: {x: {name: x}}\n", ["both `model` and `models`"]),
    "workload and workloads": (
        BASE + "workloads: {x: {load: open}}\n", ["both `workload` and `workloads`"]),
    "model key without models": (
        BASE.replace("a: {gpu: H200 SXM,", "a: {gpu: H200 SXM, model: x,"),
        ["arms.a.model", "'x'"]),
    "precision missing": (
        BASE.replace(", weight_bits: 16", "").replace("precision: bf16, ", "", 1),
        ["arms.a.precision", "nothing"]),
    "gpu missing": (BASE.replace("a: {gpu: H200 SXM, ", "a: {"), ["arms.a.gpu", "nothing"]),
    "two GPUs for one label": (BASE.replace("a: {gpu: H200 SXM,", "a: {gpu: A100,"),
                               ["arms.a.gpu", "A100 80GB PCIe", "A100 80GB SXM"]),
    "no GPU for a label": (BASE.replace("a: {gpu: H200 SXM,", "a: {gpu: Voodoo 2,"),
                           ["arms.a.gpu", "Voodoo 2"]),
    "text for a number": (BASE.replace("weight_bits: 16", "weight_bits: many"),
                          ["model.weight_bits", "'many'", "number"]),
    "negative count": (BASE.replace("a: {gpu: H200 SXM,", "a: {gpu: H200 SXM, gpus: 0,"),
                       ["arms.a.gpus", "0", "greater than 0"]),
    "unknown load": (BASE.replace("load: closed", "load: cloesd"), ["workload.load", "'cloesd'"]),
    "zone": (BASE + "time_zone: Mars/Base\n", ["time_zone", "'Mars/Base'", "IANA"]),
    "metric of the SLO": (BASE + "slo: {tfft_s: {p95: 1}}\n", ["slo.tfft_s", "ttft_s"]),
    "statistic of the SLO": (BASE + "slo: {ttft_s: {p94: 1}}\n", ["slo.ttft_s", "'p94'"]),
    "metric of a margin": (BASE + "margins: {tpot: 0.03}\n", ["margins", "tpot_s"]),
    "primary metric": (BASE + "primary: [tpot_s.p50, speed]\n", ["primary", "'speed'"]),
    "infeasible arm": (BASE + "infeasible: [{arm: x, level: 64}]\n", ["infeasible", "'x'"]),
    "arm of a comparison": (
        BASE + "comparisons: [{baseline: a, candidate: bb}]\n", ["comparisons.candidate", "'bb'"]),
    "one arm twice": (BASE + "comparisons: [{baseline: a, candidate: a}]\n", ["'a' twice"]),
    "candidate and against": (
        BASE + "comparisons: [{baseline: a, candidate: b, against: [b]}]\n",
        ["comparisons", "`candidate` or `against`"]),
    "one name twice": (
        BASE + "comparisons: [{name: x, baseline: a, candidate: b},"
        " {name: X, baseline: b, candidate: a}]\n", ["'x' twice"]),
    "treatment without difference": (
        BASE + "comparisons: [{baseline: a, candidate: b, treatment: [precision]}]\n",
        ["treatment", "precision", "bf16", "differ"]),
    "unknown treatment": (
        BASE + "comparisons: [{baseline: a, candidate: b, treatment: [moon]}]\n",
        ["treatment", "'moon'"]),
    "unknown override": (
        BASE + "comparisons: [{baseline: a, candidate: b, override: {precison: why}}]\n",
        ["override", "'precison'", "precision"]),
    "name that leaves the folder": (BASE.replace("campaign: c", "campaign: ../c"), ["'../c'"]),
    "arm that leaves the folder": (BASE.replace("  a: {", "  a/b: {"), ["'a/b'"]),
    "comparison that leaves the folder": (
        BASE + "comparisons: [{name: ../../x, baseline: a, candidate: b}]\n", ["'../../x'"]),
    "a list": ("- a\n- b\n", ["no mapping"]),
    "empty": ("", ["no mapping"]),
    "broken YAML": ("campaign: [1, 2\narms: {", [":2", "YAML"]),
    "tab": ("campaign: c\n\tmodel: x\n", [":2", "YAML"]),
    "a mapping for a list": (
        BASE + "infeasible: {arm: a, level: 64}\n", ["infeasible", "a list"]),
    "a word for a mapping": (BASE + "infeasible: [a]\n", ["infeasible.0", "a mapping, such"]),
    "an empty list": (
        BASE + "retest: [{arm: a, earlier: []}]\n", ["retest.0.earlier", "at least 1 in the list"]),
    "text for the level of logs": (
        BASE.replace('"a/c{level}_r{repeat}.json"', "{files: a/x.json, level: x}"),
        ["arms.a.files.level", "'x'", "number"]),
    "a mapping for the level of logs": (
        BASE.replace('"a/c{level}_r{repeat}.json"', "{files: a/x.json, level: {rate: 1}}"),
        ["arms.a.files.level", "'rate'", "number"]),
    "level stated and in the pattern": (
        BASE.replace('"a/c{level}_r{repeat}.json"', "{files: 'a/c{rate}.json', level: 8}"),
        ["arms.a.files", "not both"]),
    "one key twice": (BASE + "campaign: d\n", ["YAML", "duplicate"]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(MISTAKES))
def test_mistake_gives_one_line_with_key_found_and_expected(name: str, tmp_path: Path) -> None:
    text, parts = MISTAKES[name]
    line = refusal(tmp_path, text)
    for part in parts:
        assert part in line, line


def test_missing_file_and_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match=r"no such file.*gpuverdict new"):
        read_campaign(tmp_path / "campaign.yaml")
    with pytest.raises(CampaignError, match="no such file"):
        read_campaign(tmp_path)


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_bytes("campaign: \u00e9".encode("latin-1"))
    with pytest.raises(CampaignError, match="UTF-8"):
        read_campaign(path)


def test_alias_bomb_ends_quickly(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 10):
        inner = ", ".join([f"*a{i - 1}"] * 10)
        lines.append(f"a{i}: &a{i} [{inner}]")
    assert "aliases" in refusal(tmp_path, "\n".join(lines))


def test_an_alias_of_itself_is_refused(tmp_path: Path) -> None:
    line = refusal(tmp_path, "campaign: &c [*c]\n")
    assert "YAML" in line or "aliases" in line


def test_deep_nesting_and_size_are_refused(tmp_path: Path) -> None:
    assert "YAML" in refusal(tmp_path, "a: " + "[" * 5000)
    assert "bytes" in refusal(tmp_path, "# " + "x" * 2**20)


def test_no_python_objects_are_made(tmp_path: Path) -> None:
    line = refusal(tmp_path, "campaign: !!python/object/apply:os.system ['true']\n")
    assert "YAML" in line or "tag" in line


def test_control_characters_do_not_forge_lines(tmp_path: Path) -> None:
    line = refusal(tmp_path, BASE + '"x\\nfound nothing wrong": 1\n')
    assert "\n" not in line


# ------------------------------------------------------------------ files and patterns


@pytest.mark.parametrize(
    ("pattern", "names", "expected"),
    [
        ("d/c{level}_r{repeat}.json", ["c8_r2.json", "c16_r1.json", "c8_rx.json"],
         [("c8_r2.json", 8.0, 2, None), ("c16_r1.json", 16.0, 1, None)]),
        ("d/rate{rate}.json*", ["rate0.5.json", "rate2.json.gz", "rate2.txt"],
         [("rate0.5.json", 0.5, None, None), ("rate2.json.gz", 2.0, None, None)]),
        ("./d/{card}-c{level}-r{repeat}.json", ["g1-c4-r1.json", "g-2-c4-r3.json"],
         [("g-2-c4-r3.json", 4.0, 3, "g-2"), ("g1-c4-r1.json", 4.0, 1, "g1")]),
        ("d/[ab]?.json", ["a1.json", "b22.json", "c1.json"], [("a1.json", None, None, None)]),
        ("**/run{repeat}.json", ["run2.json", "run10.json"],
         [("run2.json", None, 2, None), ("run10.json", None, 10, None)]),
        ("d/c{level}/c{level}.json", [], []),
        ("d/[ab]{repeat}.json", ["a1.json", "c1.json"], [("a1.json", None, 1, None)]),
        ("d/[!a]{repeat}.json", ["a1.json", "c1.json"], [("c1.json", None, 1, None)]),
        ("d/[[|]{repeat}.json", ["[1.json", "c1.json"], [("[1.json", None, 1, None)]),
        ("d/[{repeat}.json", ["[1.json", "c1.json"], [("[1.json", None, 1, None)]),
    ],
)  # fmt: skip
def test_fields_of_a_pattern(
    tmp_path: Path, pattern: str, names: list[str], expected: list[Any]
) -> None:
    (tmp_path / "d").mkdir()
    for name in names:
        (tmp_path / "d" / name).touch()
    text = BASE.replace('files: "a/c{level}_r{repeat}.json"', f'files: "{pattern}"')
    found, missing = arm_inputs(read(tmp_path, text), "a")
    shown = [(f.path.name, f.level, f.repeat, f.card) for f in found]
    assert sorted(shown, key=str) == sorted(expected, key=str)
    assert bool(missing) == (not expected)


def test_a_pattern_may_leave_the_folder(tmp_path: Path) -> None:
    inner = tmp_path / "campaign"
    inner.mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "c4_r1.json").touch()
    text = BASE.replace('"a/c{level}_r{repeat}.json"', '"../logs/c{level}_r{repeat}.json"')
    found, _ = arm_inputs(read(inner, text), "a")
    assert [(f.level, f.repeat) for f in found] == [(4.0, 1)]
    absolute = BASE.replace(
        '"a/c{level}_r{repeat}.json"', f'"{tmp_path}/logs/c{{level}}_r{{repeat}}.json"'
    )
    found, _ = arm_inputs(read(inner, absolute), "a")
    assert [(f.level, f.repeat) for f in found] == [(4.0, 1)]


def test_missing_pattern_is_a_value_not_an_exception(tmp_path: Path) -> None:
    found, missing = arm_inputs(read(tmp_path), "a")
    assert found == []
    assert len(missing) == 1
    line = str(missing[0])
    assert "arms.a.files" in line
    assert "'a/c{level}_r{repeat}.json'" in line


def test_unknown_field_and_unknown_workload_are_errors(tmp_path: Path) -> None:
    text = BASE.replace('c{level}_r{repeat}.json"}', 'c{lvl}.json"}')
    with pytest.raises(CampaignError, match=r"\{lvl\}.*\{level\}"):
        arm_inputs(read(tmp_path, text), "a")
    text = BASE.replace('files: "a/c{level}_r{repeat}.json"', "files: {chat: a.json}")
    with pytest.raises(CampaignError, match=r"'chat'.*main"):
        arm_inputs(read(tmp_path, text), "a")
    several = BASE.replace("workload: {load: closed}", "workloads: {x: {}, y: {}}")
    with pytest.raises(CampaignError, match="no stated workload"):
        arm_inputs(read(tmp_path, several), "a")


def test_options_of_a_mapping_reach_the_reader(tmp_path: Path) -> None:
    text = BASE.replace(
        'files: "a/c{level}_r{repeat}.json"',
        "files: {files: a/*.csv, format: open, clock: monotonic, t0_epoch_s: 10, decimal: ',',"
        " separator: ;, encoding: gb18030, recover: true, columns: {Wait: {to: ttft_s, unit: ms}}}",
    )
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.csv").touch()
    (found,), _ = arm_inputs(read(tmp_path, text + "time_zone: Asia/Shanghai\n"), "a")
    options = found.options
    assert (options.format, options.clock, options.t0_epoch_s) == ("open", "monotonic", 10)
    assert (options.decimal, options.separator, options.encoding) == (",", ";", "gb18030")
    assert options.recover is True
    assert options.columns == {"Wait": {"to": "ttft_s", "unit": "ms"}}
    assert options.time_zone == "Asia/Shanghai"


def test_key_table_lists_every_key_once() -> None:
    rows = [line.split("|")[1].strip() for line in key_table().splitlines()[2:]]
    assert len(rows) == len(set(rows))
    for key in ("campaign", "arms.*.gpu", "arms.*.sweeps", "comparisons.*.treatment",
                "design.runs_per_arm", "model.layers", "noise_floor.log_sd", "arms.*.quality.score",
                "infeasible.*.level"):  # fmt: skip
        assert f"`{key}`" in rows, key


@pytest.mark.parametrize("pattern", ["d/[z-a].json", "d/x{level}[", "d/{level}**x"])
def test_a_pattern_that_is_none_is_an_error_or_matches_nothing(
    tmp_path: Path, pattern: str
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "y.json").touch()
    text = BASE.replace('"a/c{level}_r{repeat}.json"', f'"{pattern}"')
    said = ""
    try:
        found, missing = arm_inputs(read(tmp_path, text), "a")
    except CampaignError as problem:
        found, missing, said = [], [problem], str(problem)
    assert found == []
    assert missing
    assert "arms.a.files" in (said or str(missing[0]))
