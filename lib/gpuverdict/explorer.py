"""Widgets over a campaign: choose arms, metric, level and run; see figure and table change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pandas as pd

from gpuverdict import figures, tables
from gpuverdict.campaign import ComparisonSpec
from gpuverdict.case import Case, open_case
from gpuverdict.errors import CampaignError
from gpuverdict.figures import Plate
from gpuverdict.measured import level_label
from gpuverdict.schema import METRICS, STATISTICS
from gpuverdict.tables.words import metric_name, spoken

__all__ = ["Explorer", "explore"]

VIEWS = ("runs", "intervals", "distribution", "shift", "timeline", "trade_off")
_REQUEST_METRICS = ("tpot_s", "ttft_s", "e2e_s")
# What a table shows before it asks to be narrowed.
MOST_ROWS = 200


def explore(campaign: str | Path, *, lang: str = "en", store: str | Path | None = None) -> Explorer:
    """Open a campaign for exploring.

    Parameters
    ----------
    campaign : path
    lang : str
        `en` or `zh`.
    store : path, optional
        As in `open_case`.

    Returns
    -------
    Explorer
        Shows itself as widgets in a notebook; `digest()` is the current view as text.

    Raises
    ------
    CampaignError
        When no arm has a run: there is nothing to choose from.
    """
    case = open_case(campaign, store=store)
    if case.summary.frame.empty:
        lost = case.measured.lost
        raise CampaignError(campaign, found="no run that could be read", expected="one or more",
                            remedy=lost[0].error if lost else "")  # fmt: skip
    return Explorer(case, lang=lang)


class Explorer:
    """The widgets and what they show. Requests are read only for the run in view, and thinned."""

    def __init__(self, case: Case, lang: str = "en") -> None:
        self.lang = lang
        self.case = case
        self._shown: Plate | None = None
        arms = list(case.campaign.arms)
        metrics = [m for m in METRICS if (case.summary.frame.metric == m).any()]
        self.view = self._choice("explore_view", [(spoken(lang, f"view_{v}"), v) for v in VIEWS])
        self.baseline = self._choice("explore_baseline", arms, case.spec.baseline)
        self.candidate = self._choice("explore_candidate", arms, str(case.spec.candidate))
        self.metric = self._choice(
            "explore_metric", [(metric_name(m, "value", lang), m) for m in metrics], "tpot_s"
        )
        self.statistic = self._choice("explore_statistic", list(STATISTICS), "p50")
        self.level = self._choice("explore_level", self._levels())
        self.run = self._choice("explore_run", [1])
        self.order = self._choice(
            "explore_sort", [(spoken(lang, f"sort_{c}"), c) for c in ("arm", "level", "value")]
        )
        self.figure = widgets.HTML()
        self.table = widgets.HTML()
        self.folder = widgets.Text(
            value="explore-export", description=spoken(lang, "explore_folder")
        )
        self.save = widgets.Button(description=spoken(lang, "explore_save"))
        self.saved = widgets.HTML()
        self.save.on_click(lambda _: self._save())
        for choice in (self.view, self.metric, self.statistic, self.level, self.run, self.order):
            choice.observe(self._changed, names="value")
        for choice in (self.baseline, self.candidate):
            choice.observe(self._arms_changed, names="value")
        self._changed()

    def _choice(self, code: str, options: list[Any], value: Any = None) -> Any:
        chosen = widgets.Dropdown(options=options, description=spoken(self.lang, code))
        if value is not None and value in [o[1] if isinstance(o, tuple) else o for o in options]:
            chosen.value = value
        return chosen

    def _levels(self) -> list[tuple[str, float]]:
        arms = (self.baseline.value, self.candidate.value)
        found = {
            next(iter(r.level.values())): level_label(r.level)
            for arm in arms
            for r in self.case.measured.runs_of(arm)
        }
        return [(label, value) for value, label in sorted(found.items())]

    def _arms_changed(self, _: Any = None) -> None:
        """Take the comparison of the chosen arms, declared in the campaign or not."""
        pair = (self.baseline.value, self.candidate.value)
        specs = [s for s in self.case.campaign.comparisons if isinstance(s, ComparisonSpec)]
        spec = next((s for s in specs if (s.baseline, s.candidate) == pair), None)
        spec = spec or ComparisonSpec(name="explore", baseline=pair[0], candidate=pair[1])
        verdict = self.case.verdict
        if (self.case.spec.baseline, self.case.spec.candidate) != pair:
            from gpuverdict.verdict import judge

            verdict = judge(self.case.measured, self.case.summary, spec, health=self.case.health)
        self.case = replace(self.case, spec=spec, verdict=verdict)
        kept = self.level.value
        self.level.options = self._levels()
        if kept in [value for _, value in self.level.options]:
            self.level.value = kept
        self._changed()

    def _repeats(self) -> list[int]:
        runs = self.case.measured.runs_of(self.candidate.value)
        return sorted(
            {r.repeat_no for r in runs if next(iter(r.level.values())) == self.level.value}
        ) or [1]

    def _changed(self, _: Any = None) -> None:
        repeats = self._repeats()
        if list(self.run.options) != repeats:
            self.run.options = repeats  # setting options comes back here with the new run
        single = not METRICS[self.metric.value].distribution
        statistic = "value" if single else self.statistic.value
        if not single and statistic == "value":
            statistic = "p50"
        plate = self._plate(statistic)
        self._shown = plate
        self.figure.value = plate._repr_html_()
        self.table.value = self._section(statistic)._repr_html_()

    def _plate(self, statistic: str) -> Plate:
        case, metric, level, lang = self.case, self.metric.value, self.level.value, self.lang
        requests = metric if metric in _REQUEST_METRICS else "tpot_s"
        if self.view.value == "intervals":
            return figures.intervals(case, metric, statistic, lang)
        if self.view.value == "distribution":
            return figures.distribution(case, requests, level, lang)
        if self.view.value == "shift":
            return figures.shift(case, requests, level, lang)
        if self.view.value == "timeline":
            return figures.request_timeline(case, self.candidate.value, level, self.run.value, lang)
        if self.view.value == "trade_off":
            return figures.trade_off(case, lang)
        return figures.run_values(case, metric, statistic, lang)

    def frame(self) -> pd.DataFrame:
        """Return the numbers of the current metric and level: one row a run, sorted as chosen."""
        frame = self.case.summary.frame
        arms = [self.baseline.value, self.candidate.value]
        rows = frame[
            frame.arm.isin(arms)
            & (frame.metric == self.metric.value)
            & frame.window.isin(["steady", "whole_run"])
        ]
        single = not METRICS[self.metric.value].distribution
        wanted = "value" if single else self.statistic.value
        rows = rows[rows.statistic == ("p50" if wanted == "value" and not single else wanted)]
        rows = rows.sort_values("window").drop_duplicates(["arm", "run_id"])
        columns = ["arm", "workload", "level", "repeat_no", "value", "unit", "n", "window"]
        by = {
            "arm": ["arm", "level", "repeat_no"],
            "level": ["level", "arm", "repeat_no"],
            "value": ["value"],
        }
        return rows[columns].sort_values(by[self.order.value]).reset_index(drop=True)

    def _section(self, statistic: str) -> tables.Section:
        frame = self.frame()
        unit = METRICS[self.metric.value].unit
        heads = [
            spoken(self.lang, c)
            for c in (
                "col_arm",
                "col_level",
                "col_repeat",
                "explore_value",
                "explore_n",
                "col_window",
            )
        ]
        rows = [tables.run_row(r, unit) for r in frame.head(MOST_ROWS).itertuples(index=False)]
        name = metric_name(self.metric.value, statistic, self.lang)
        return tables.plain_table("explore", name, heads, rows, right=heads[2:5])

    def digest(self) -> str:
        """Print the view as text: the numbers drawn, rounded, and the first rows of the table."""
        assert self._shown is not None
        return f"{self._shown.digest()}\n{self.frame().head(6).to_string(index=False)}"

    def export(self, folder: str | Path) -> list[Path]:
        """Write the current view: figure as SVG, its numbers and the table as CSV."""
        assert self._shown is not None
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        plate = self._shown
        picture = target / f"{plate.name}.svg"
        text = figures.svg_text(plate.axes, plate.name, plate.alt)
        picture.write_text(text, encoding="utf-8")
        drawn, table = target / f"{plate.name}.csv", target / f"{self.metric.value}.csv"
        tables.write_csv(plate.frame, drawn)
        tables.write_csv(self.frame(), table)
        return [picture, drawn, table]

    def _save(self) -> None:
        written = self.export(self.folder.value)
        names = ", ".join(path.as_posix() for path in written)
        text = tables.plain_table("saved", spoken(self.lang, "explore_saved"), ["·"], [[names]])
        self.saved.value = text._repr_html_()

    def widget(self) -> Any:
        """Lay the widgets out: choices, figure, table, export."""
        box = widgets.Layout(flex_flow="row wrap")
        choices = [
            self.view,
            self.baseline,
            self.candidate,
            self.metric,
            self.statistic,
            self.level,
            self.run,
        ]
        return widgets.VBox(
            [
                widgets.Box(choices, layout=box),
                self.figure,
                self.order,
                self.table,
                widgets.HBox([self.folder, self.save]),
                self.saved,
            ]
        )

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget()._repr_mimebundle_(**options)
