"""Published tables: which claims stand, and rows that are copies or lack a factor."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from gpuverdict.capacity import (
    check_phase_ratio,
    check_published,
    claims_frame,
    copied_groups,
    limits_of,
    power_in_watts,
    read_published,
    throughput_formula,
)
from gpuverdict.errors import LogFormatError, ParameterError

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = ROOT.parent / "shared" / "data" / "public"
TABLE = ROOT / "data" / "published_tables.csv"

needs_public = pytest.mark.skipif(
    not PUBLIC.exists(), reason="no public data beside the repository"
)


@pytest.fixture(scope="module")
def claims() -> pd.DataFrame:
    return claims_frame(check_published(read_published(TABLE)))


def found(claims, standing, gpu="", claim=""):
    hit = (claims["standing"] == standing) & claims["gpu"].str.contains(gpu, regex=False)
    return claims[hit & claims["claim"].str.contains(claim, regex=False)]


def test_models_that_do_not_fit_are_impossible(claims):
    misfits = found(claims, "impossible", "4090")
    bounds = set(misfits[misfits["value"] > 1e9]["value"].round(-7))
    assert bounds == {26.03e9, 34.49e9}


def test_a_step_below_the_weight_read_is_impossible(claims):
    (row,) = found(claims, "impossible", "4090", "latency_per_token").to_dict("records")
    assert row["bound"] * 1e3 == pytest.approx(16e9 / 1008e9 * 1e3)
    whole = found(claims, "impossible", "A100", "latency 1247")
    assert whole["bound"].iloc[0] == pytest.approx(511 * 16e9 / 2039e9)


def test_the_cache_of_all_streams_needs_grouped_queries(claims):
    rows = found(claims, "needs a cause", claim="at 64 streams")
    bounds = {r["gpu"]: r["bound"] * 1e3 for r in rows.to_dict("records") if r["bound"] > 0}
    expected = {"A100 80GB": 42.4, "H800 80GB": 25.8, "H20 96GB": 21.6}
    assert bounds == {gpu: pytest.approx(ms, abs=0.05) for gpu, ms in expected.items()}
    assert len(found(claims, "needs a cause", claim="at 32 streams")) >= 4


def test_ratios_beyond_both_limits_are_found(claims):
    ratios = found(claims, "needs a cause", "H20 96GB against H800")["value"].round(2).tolist()
    assert ratios == [1.22, 1.43, 1.60]


def test_arithmetic_that_holds_and_arithmetic_that_does_not(claims):
    assert len(found(claims, "stands", claim="per stream")) == 4
    (row,) = found(claims, "contradicts itself").to_dict("records")
    assert row["value"] / 1e9 == pytest.approx(5.84, abs=0.01)
    assert row["bound"] / 1e9 == pytest.approx(8.31, abs=0.01)
    watts = found(claims, "needs a cause", claim="tokens/W")["value"].round().tolist()
    assert watts == [107.0, 94.0]
    shares = found(claims, "stands", "H20", "tpot 4.6")["reason"].iloc[0]
    assert "73 %" in shares


def test_single_values_rank_nothing(claims):
    assert len(found(claims, "not judged")) > 30
    assert not set(claims["standing"]) & {"faster", "slower", "equivalent"}


def test_other_shapes_are_refused(tmp_path):
    other = tmp_path / "t.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(LogFormatError):
        read_published(other)
    text = TABLE.read_text(encoding="utf-8").splitlines()
    other.write_text("\n".join([text[0], text[1].replace(",18.2,", ",fast,")]), encoding="utf-8")
    with pytest.raises(LogFormatError, match=r"t\.csv:2"):
        read_published(other)
    other.write_text(
        "\n".join([text[0], text[1].replace(",published,", ",infeasible,")]), encoding="utf-8"
    )
    with pytest.raises(LogFormatError, match="infeasible"):
        read_published(other)


def test_an_open_label_gets_the_better_card():
    assert limits_of("A100 80GB").bandwidth_bytes_per_s == 2039e9
    assert limits_of("A100 80GB PCIe").bandwidth_bytes_per_s == 1935e9
    assert limits_of("some other accelerator") is None


@needs_public
def test_splitwise_ratios_lie_within_the_rooflines_and_the_capped_rows_are_copies():
    table = pd.read_csv(PUBLIC / "splitwise-perf-model" / "perf_model.csv")
    copies = copied_groups(
        table, "hardware",
        ["model", "prompt_size", "batch_size", "token_size", "tensor_parallel"],
        ["prompt_time", "token_time"],
    )  # fmt: skip
    factors = {
        (r["group"], r["value"]): (r["copy_of"], round(r["factor"], 6))
        for r in copies.to_dict("records")
    }
    assert factors == {
        ("h100-80gb-pcap", "prompt_time"): ("h100-80gb", 1.3),
        ("h100-80gb-pcap", "token_time"): ("h100-80gb", 1.0),
    }
    real = table[~table["hardware"].isin(set(copies["group"]))]
    cells = real[
        (real["model"] == "llama2-70b") & (real["tensor_parallel"] == 8)
        & (real["prompt_size"] == 512) & (real["token_size"] == 128)
    ]  # fmt: skip
    means = cells.groupby(["batch_size", "hardware"])[["prompt_time", "token_time"]].mean()
    for batch in (1, 8, 16, 32, 64):
        for column in ("prompt_time", "token_time"):
            a, b = (means.loc[(batch, f"{card}-80gb"), column] for card in ("a100", "h100"))
            assert check_phase_ratio(a / b, bandwidth_ratio=1.64, compute_ratio=3.17) is None
    assert means.loc[(1, "a100-80gb"), "prompt_time"] == pytest.approx(95.7, abs=0.05)


@needs_public
def test_argonne_rows_without_the_batch_and_power_in_milliwatts():
    table = pd.read_csv(
        PUBLIC / "argonne-llm-inference-bench" / "All_results.csv", skip_blank_lines=True
    )
    table = table.rename(columns=lambda name: name.strip())

    def formula(row) -> str | None:
        return throughput_formula(
            row["Throughput"], batch=row["Batch Size"], input_tokens=row["Input Output Length"],
            output_tokens=row["Input Output Length"], latency_s=row["Latency"],
        )  # fmt: skip

    many = table[(table["Batch Size"] > 1) & (table["Latency"] > 0) & (table["Throughput"] > 0)]
    llama = many[many["Framework"].str.lower().str.contains("llama")]
    formulas = llama.apply(formula, axis=1)
    assert len(llama) > 1000
    assert (formulas == "total tokens, without the batch").mean() > 0.99
    vllm = many[many["Framework"] == "vLLM"].head(200)
    assert (vllm.apply(formula, axis=1) == "total tokens").mean() > 0.99
    power = pd.read_csv(PUBLIC / "argonne-llm-inference-bench" / "power_results.csv",
                        skip_blank_lines=True)  # fmt: skip
    watts, unit = power_in_watts(float(power["avg_power"].iloc[0]), 400.0)
    assert unit == "mW"
    assert watts == pytest.approx(222.122, abs=0.001)
    with pytest.raises(ParameterError):
        power_in_watts(0.3, 400.0)
