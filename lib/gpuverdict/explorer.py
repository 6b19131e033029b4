"""Widgets over a campaign: choose arms, metric, level and run; see figure and table change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pandas as pd
import polars as pl

from gpuverdict import figures, tables
from gpuverdict.campaign import ComparisonSpec
from gpuverdict.case import Case, device_identity, open_case
from gpuverdict.errors import CampaignError
from gpuverdict.figures import Plate
from gpuverdict.health import health_with
from gpuverdict.measured import MeasuredRun
from gpuverdict.schema import METRICS, STATISTICS
from gpuverdict.summary import per_run
from gpuverdict.tables.words import level_name, metric_name, spoken
from gpuverdict.verdict import Verdict, judge

__all__ = ["Explorer", "explore"]

# view -> the choices that change it, beside the arms; the others are greyed out.
VIEWS: Mapping[str, tuple[str, ...]] = {
    "runs": ("metric", "statistic", "level"),
    "intervals": ("metric", "statistic"),
    "distribution": ("metric", "level"),
    "shift": ("metric", "level"),
    "timeline": ("level", "shown", "run", "span"),
    "trade_off": ("level",),
}
_RUN_COLUMNS = ("arm", "level_value", "repeat_no", "value", "n")
# What a table shows; the export holds all runs, and so many requests.
MOST_ROWS = 200
MOST_EXPORTED = 100_000
_KEPT = 64
_WIDTH = widgets.Layout(width="290px")


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
    """The widgets and what they show. Requests are aggregated before they are drawn, and kept."""

    def __init__(self, case: Case, lang: str = "en") -> None:
        self.lang = lang
        self.case = case
        self._identity = device_identity(case.measured)[1]
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        self._plates: OrderedDict[tuple[Any, ...], tuple[Plate, str]] = OrderedDict()
        self._still = False
        self._shown: Plate | None = None
        arms = list(case.campaign.arms)
        metrics = [m for m in METRICS if (case.summary.frame.metric == m).any()]
        self.view = self._choice("view", [(spoken(lang, f"view_{v}"), v) for v in VIEWS])
        self.baseline = self._choice("baseline", arms, case.spec.baseline)
        self.candidate = self._choice("candidate", arms, str(case.spec.candidate))
        self.metric = self._choice(
            "metric", [(metric_name(m, "value", lang), m) for m in metrics], "tpot_s"
        )
        self.statistic = self._choice("statistic", [s for s in STATISTICS if s != "value"], "p50")
        self.level = self._choice("level", self._levels())
        self.shown = self._choice("shown", [self.candidate.value, self.baseline.value])
        self.run = self._choice("run", self._repeats())
        self.span = widgets.FloatRangeSlider(
            description=spoken(lang, "explore_span"), continuous_update=False, readout_format=".1f",
            layout=widgets.Layout(width="590px"),
        )  # fmt: skip
        self.rows = self._choice(
            "rows", [(spoken(lang, f"rows_{r}"), r) for r in ("runs", "requests")]
        )
        self.order = self._choice("sort", self._orders())
        self.falling = widgets.Checkbox(
            description=spoken(lang, "explore_falling"), indent=False, layout=_WIDTH
        )
        self.figure, self.table, self.saved = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self.folder = widgets.Text(
            value="explore-export", description=spoken(lang, "explore_folder"), layout=_WIDTH
        )
        self.save = widgets.Button(description=spoken(lang, "explore_save"))
        self.save.on_click(lambda _: self._save())
        self._span_of_run()
        for choice, follow in (
            (self.baseline, self._follow_arms), (self.candidate, self._follow_arms),
            (self.level, self._follow_run), (self.shown, self._follow_run),
            (self.run, self._span_of_run), (self.rows, self._follow_rows),
            (self.view, None), (self.metric, None), (self.statistic, None), (self.span, None),
            (self.order, None), (self.falling, None),
        ):  # fmt: skip
            choice.observe(self._answer(follow), names="value")
        self._draw()

    def _choice(self, code: str, options: list[Any], value: Any = None) -> Any:
        chosen = widgets.Dropdown(
            options=options, description=spoken(self.lang, f"explore_{code}"), layout=_WIDTH
        )
        if value is not None and value in [o[1] if isinstance(o, tuple) else o for o in options]:
            chosen.value = value
        return chosen

    def _answer(self, follow: Callable[[], None] | None) -> Callable[[Any], None]:
        """Answer a choice: set the choices that follow from it, then draw once."""

        def changed(_: Any) -> None:
            if self._still:
                return
            if follow is not None:
                with self._quiet():
                    follow()
            self._draw()

        return changed

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        self._still = True
        try:
            yield
        finally:
            self._still = False

    # --- which choices there are ---

    def _arms(self) -> tuple[str, str]:
        return self.baseline.value, self.candidate.value

    def _levels(self) -> list[tuple[str, tuple[str, str]]]:
        runs = [r for arm in self._arms() for r in self.case.measured.runs_of(arm)]
        found = {(r.workload, r.level_key): r.level for r in runs}
        several = len({workload for workload, _ in found}) > 1
        ordered = sorted(found.items(), key=lambda item: (item[0][0], *item[1].values()))
        return [
            (level_name(level, self.lang) + (f" · {key[0]}" if several else ""), key)
            for key, level in ordered
        ]

    def _runs(self) -> list[MeasuredRun]:
        runs = self.case.measured.runs_of(self.shown.value)
        return [r for r in runs if (r.workload, r.level_key) == self.level.value]

    def _repeats(self) -> list[int]:
        return sorted({r.repeat_no for r in self._runs()}) or [1]

    def _chosen(self) -> MeasuredRun | None:
        return next((r for r in self._runs() if r.repeat_no == self.run.value), None)

    def _orders(self) -> list[tuple[str, str]]:
        columns = _RUN_COLUMNS if self.rows.value == "runs" else tables.REQUEST_COLUMNS
        return [(spoken(self.lang, f"sort_{c}"), c) for c in columns]

    def _offer(self, choice: Any, options: list[Any]) -> None:
        """Renew the options of a choice; what was chosen stays where it still can be."""
        kept = choice.value
        choice.options = options
        if kept in [o[1] if isinstance(o, tuple) else o for o in options]:
            choice.value = kept

    def _follow_arms(self) -> None:
        self.case = replace(self.case, spec=self._spec())
        self._offer(self.level, self._levels())
        self._offer(self.shown, list(dict.fromkeys(reversed(self._arms()))))
        self._follow_run()

    def _follow_run(self) -> None:
        self._offer(self.run, self._repeats())
        self._span_of_run()

    def _follow_rows(self) -> None:
        self._offer(self.order, self._orders())

    def _span_of_run(self) -> None:
        run = self._chosen()
        spans = None if run is None else figures.first_span(run)
        if spans is None:
            return
        (first, last), shown = spans
        # The ends are widened before they are narrowed: a slider refuses crossed ones.
        self.span.max = max(self.span.max, last, first)
        self.span.min, self.span.max = first, max(last, first + 1e-3)
        self.span.step = (self.span.max - self.span.min) / 1000
        self.span.value = shown

    # --- the comparison ---

    def _spec(self) -> ComparisonSpec:
        """Take the comparison of the chosen arms as the campaign declares it, either way round."""
        pair = self._arms()
        specs = [s for s in self.case.campaign.comparisons if isinstance(s, ComparisonSpec)]
        for given in (pair, pair[::-1]):
            found = next((s for s in specs if (s.baseline, s.candidate) == given), None)
            if found is not None:
                return found.model_copy(update={"baseline": pair[0], "candidate": pair[1]})
        return ComparisonSpec(name="explore", baseline=pair[0], candidate=pair[1])

    def _judged(self) -> Case:
        """Give the case with the verdict of the chosen arms, decided when first asked for."""
        pair = self._arms()
        if pair not in self._verdicts:
            # The health of both arms is part of their verdict.
            health = health_with(self.case.health, self.case.measured, self.case.summary, pair)
            self.case = case = replace(self.case, health=health)
            self._verdicts[pair] = judge(
                case.measured, case.summary, case.spec, identity=self._identity, health=case.health
            )
        return replace(self.case, verdict=self._verdicts[pair])

    # --- what is shown ---

    def _draw(self) -> None:
        view = self.view.value
        single = not METRICS[self.metric.value].distribution
        for name in ("metric", "statistic", "level", "shown", "run", "span"):
            used = name in VIEWS[view] and not (name == "statistic" and single)
            if name in ("shown", "run", "level") and self.rows.value == "requests":
                used = True
            if name in ("metric", "statistic") and self.rows.value == "runs":
                used = name == "metric" or not single
            getattr(self, name).disabled = not used
        key = (view, *self._arms(), *(getattr(self, name).value for name in VIEWS[view]))
        if key not in self._plates:
            plate = self._plate(view)
            self._plates[key] = plate, plate._repr_html_()
            if len(self._plates) > _KEPT:
                self._plates.popitem(last=False)
        self._shown, self.figure.value = self._plates[key]
        self.table.value = self._section()._repr_html_()

    def _statistic(self) -> str:
        return self.statistic.value if METRICS[self.metric.value].distribution else "value"

    def _plate(self, view: str) -> Plate:
        case, metric, lang = self.case, self.metric.value, self.lang
        workload, level_key = self.level.value
        runs = [r for arm in self._arms() for r in case.measured.runs_of(arm)]
        level = next(r.level for r in runs if (r.workload, r.level_key) == (workload, level_key))
        if view == "intervals":
            return figures.intervals(self._judged(), metric, self._statistic(), lang)
        if view == "distribution":
            return figures.distribution(case, metric, level, lang, workload)
        if view == "shift":
            return figures.shift(case, metric, level, lang, workload)
        if view == "timeline":
            return figures.request_timeline(
                case, self.shown.value, level, self.run.value, lang, workload=workload,
                span=self.span.value,
            )  # fmt: skip
        if view == "trade_off":
            return figures.trade_off(case, lang, workload)
        return figures.run_values(case, metric, self._statistic(), lang, workload)

    def frame(self, most: int | None = None) -> pd.DataFrame:
        """Return the rows of the table, sorted as chosen, in base units.

        Parameters
        ----------
        most : int, optional
            The first so many of them.

        Returns
        -------
        pandas.DataFrame
            One row a run of the metric in the chosen workload, or one row a request of the run.
        """
        if self.rows.value == "requests":
            order, falling = self.order.value, self.falling.value
            return tables.request_frame(self._chosen(), order, falling=falling, most=most)
        rows = per_run(
            self.case.summary, self._arms(), self.level.value[0], self.metric.value,
            self._statistic(),
        )  # fmt: skip
        by = list(dict.fromkeys([self.order.value, "arm", "level_value", "repeat_no"]))
        rising = [not (self.falling.value and column == self.order.value) for column in by]
        columns = ["arm", "workload", "level", "repeat_no", "value", "unit", "n", "window"]
        ordered = rows.sort_values(by, ascending=rising, kind="stable")[columns]
        return ordered.head(most or len(ordered)).reset_index(drop=True)

    def _total(self) -> int:
        run = self._chosen()
        if self.rows.value == "runs":
            return len(self.frame())
        return 0 if run is None else int(run.stored.scan().select(pl.len()).collect().item())

    def _section(self) -> tables.Section:
        lang, total = self.lang, self._total()
        frame = self.frame(MOST_ROWS)
        said = spoken(
            lang, "explore_wide", shown=len(frame), total=total, exported=min(total, MOST_EXPORTED)
        )
        if self.rows.value == "requests":
            place = next(label for label, key in self.level.options if key == self.level.value)
            arm = self.shown.value
            title = spoken(lang, "explore_requests", arm=arm, run=self.run.value, level=place)
            nothing = spoken(lang, "no_run_there", arm=arm, level=place)
            return tables.request_rows(frame, title, said, lang, nothing)
        name = metric_name(self.metric.value, self._statistic(), lang)
        return tables.run_rows(frame, name, METRICS[self.metric.value].unit, said, lang)

    def digest(self) -> str:
        """Print the view as text: the numbers drawn, rounded, and the first rows of the table."""
        assert self._shown is not None
        drawn = replace(self._shown, frame=self._shown.frame.head(6))
        return f"{drawn.digest()}\n{self.frame(6).to_string(index=False)}"

    def export(self, folder: str | Path) -> list[Path]:
        """Write the current view: figure as SVG and PNG, its numbers and the table as CSV and XLSX.

        Returns
        -------
        list of Path
            What was written, in a folder that is made where it is missing.
        """
        assert self._shown is not None
        target, plate = Path(folder), self._shown
        target.mkdir(parents=True, exist_ok=True)
        table = self.frame(MOST_EXPORTED)
        name = self.metric.value if self.rows.value == "runs" else "requests"
        pictures = [
            path for kind in ("svg", "png") for path in figures.write_plates([plate], target, kind)
        ]
        drawn, book = target / f"{plate.name}.csv", target / f"{plate.name}.xlsx"
        listed = target / f"table-{name}.csv".replace("_", "-")
        tables.write_csv(plate.frame, drawn)
        title = f"{self.case.campaign.campaign}: {plate.finding}"
        tables.write_sheets({"drawn": plate.frame, "table": table}, book, title[:250])
        tables.write_csv(table, listed)
        return [*pictures, drawn, book, listed]

    def _save(self) -> None:
        try:
            written = self.export(self.folder.value)
        except OSError as problem:
            reason = f"{self.folder.value}: {(problem.strerror or str(problem)).lower()}"
            said = spoken(self.lang, "explore_not_saved", reason=reason)
        else:
            names = ", ".join(path.as_posix() for path in written)
            said = spoken(self.lang, "explore_saved", names=names)
        self.saved.value = tables.remark(said)._repr_html_()

    def widget(self) -> Any:
        """Lay the widgets out: choices, figure, table, export."""
        wrap = widgets.Layout(flex_flow="row wrap")
        above = [self.view, self.baseline, self.candidate, self.metric, self.statistic, self.level,
                 self.shown, self.run, self.span]  # fmt: skip
        below = [self.rows, self.order, self.falling]
        # The table scrolls by itself, so that choices, figure and table stay within one screen.
        self.table.layout = widgets.Layout(max_height="340px", overflow="auto", max_width="900px")
        return widgets.VBox(
            [
                widgets.Box(above, layout=wrap), self.figure, widgets.Box(below, layout=wrap),
                self.table, widgets.HBox([self.folder, self.save]), self.saved,
            ]
        )  # fmt: skip

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget()._repr_mimebundle_(**options)
