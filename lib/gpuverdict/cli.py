"""The command line: seven verbs, one line for every mistake, exit codes that tell.

Imports stay inside the commands: `--help` must answer at once, and an unchanged campaign must be
recognised without loading what would render it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gpuverdict.errors import GpuverdictError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Which GPU serves this model better, in which phase, by how much, and is it real?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Paths = Annotated[list[Path], typer.Argument(help="Files or folders.")]
CampaignPath = Annotated[
    Path, typer.Argument(help="A campaign.yaml, or the folder that holds one.")
]
Store = Annotated[
    Path | None, typer.Option(help="Where the Parquet store lies; default beside the campaign.")
]
Jobs = Annotated[int, typer.Option(help="Processes.", min=1)]
Cluster = Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    try:
        # A scheduler that ends a job gets the same clean-up as a person at the keyboard.
        signal.signal(signal.SIGTERM, _interrupt)
        # Outside of standalone mode an Exit comes back as its code.
        sys.exit(app(standalone_mode=False) or 0)
    except GpuverdictError as problem:
        _stop(str(problem), 2)
    except (typer.Abort, KeyboardInterrupt):
        _stop("stopped; what is finished stays, the same command does the rest", 130)
    except BrokenPipeError:
        # The reader of a pipe left; what it asked for was delivered.
        sys.stderr.close()
        sys.exit(0)
    except MemoryError:
        _stop("found more data than fits in memory, expected less; ingest fewer files at once", 2)
    except OSError as problem:
        _stop(f"{problem.filename or 'system'}: {str(problem.strerror or problem).lower()}", 2)
    except Exception as problem:
        show = getattr(problem, "format_message", None)
        if show is None:
            raise
        _stop(show(), 2)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _stop(line: str, code: int) -> None:
    print(f"gpuverdict: {line}", file=sys.stderr)
    sys.exit(code)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False))


@app.command()
def inspect(
    paths: Paths,
    as_json: AsJson = False,
    campaign: Annotated[
        bool, typer.Option("--campaign", help="Print a draft campaign.yaml for a folder.")
    ] = False,
    format: Annotated[str | None, typer.Option(help="Dialect, when two accept a file.")] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Such as gb18030, when it cannot be told.")
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(help="IANA zone of zone-less trace stamps.")
    ] = None,
) -> None:
    """Say what each file is: dialect, version, runs, rows by status, definitions, cautions.

    Example: gpuverdict inspect data/h200/card-a-bf16 --json
    """
    from gpuverdict.files import ReadOptions
    from gpuverdict.inspection import inspect_paths, inspection_text

    options = ReadOptions(format=format, encoding=encoding, time_zone=time_zone)
    if campaign:
        from gpuverdict.draft import draft_campaign

        for path in paths:
            print(draft_campaign(path, options))
        return
    found = inspect_paths(paths, options)
    if as_json:
        _print_json(found)
    else:
        print(inspection_text(found))


@app.command()
def ingest(
    campaign: CampaignPath, store: Store = None, jobs: Jobs = 1, cluster: Cluster = None
) -> None:
    """Read raw logs and traces into the Parquet store; unchanged files are not read again.

    Example: gpuverdict ingest data/h200 --jobs 2
    """
    from gpuverdict.campaign import read_campaign
    from gpuverdict.measured import measure
    from gpuverdict.store import default_store

    declared = read_campaign(campaign)
    place = store or default_store(declared)
    with _progress("reading") as (started, step):
        from gpuverdict.campaign import arm_inputs

        started(sum(len(arm_inputs(declared, arm)[0]) for arm in declared.arms))
        measured = measure(
            declared,
            store=place,
            jobs=jobs,
            cluster=cluster,
            progress=lambda file: step(file.path.name),
        )
    rows = sum(int(run.stored.info["n_rows"] or 0) for run in measured.runs)
    traces = sum(len(t) for t in measured.traces.values())
    print(f"{len(measured.runs)} runs, {rows:,} requests, {traces} traces in {place}")
    _exit_with_losses([f"{item.arm}: {item.error}" for item in measured.lost])


@app.command()
def summarize(paths: Paths, as_json: AsJson = False) -> None:
    """Give the per-run summary, long form, of files (whole run) or a campaign (steady window).

    Example: gpuverdict summarize data/h200/card-a-bf16/guidellm-r1.json.gz --json
    """
    from gpuverdict.case import summarize_paths
    from gpuverdict.summary import summary_rows, summary_text

    frame, lost = summarize_paths(paths)
    if as_json:
        _print_json({"rows": summary_rows(frame)})
    else:
        print(summary_text(frame))
    for line in lost:
        print(f"gpuverdict: {line}", file=sys.stderr)


@app.command()
def report(
    campaign: CampaignPath,
    only: Annotated[str | None, typer.Option(help="One comparison by name.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; default reports/<campaign>.")] = None,
    lang: Annotated[str, typer.Option(help="en or zh.")] = "en",
    jobs: Jobs = 1,
    cluster: Cluster = None,
    store: Store = None,
    figures: Annotated[
        str | None, typer.Option(help="svg or png: the figures in files of their own too.")
    ] = None,
) -> None:
    """Render one report a comparison, and the campaign's index.

    Example: gpuverdict report data/h200 --only eager
    """
    from gpuverdict.report import render_campaign

    with _progress("rendering") as (started, step):
        done = render_campaign(
            campaign, only=only, out=out, lang=lang, jobs=jobs, cluster=cluster, store=store,
            figure_format=figures, started=started, progress=step,
        )  # fmt: skip
    for item in done.comparisons:
        for line in item.lines:
            print(line)
        if item.error:
            print(f"{item.name}: failed: {item.error}", file=sys.stderr)
    if len(done.comparisons) > 1:
        width = max(len(item.name) for item in done.comparisons)
        for item in done.comparisons:
            file = "report.ipynb" if item.error else "report.html"
            print(f"{item.name:{width}}  {item.state:9}  {done.index.parent / item.folder / file}")
    counts = {
        s: sum(c.state == s for c in done.comparisons) for s in ("rendered", "unchanged", "failed")
    }
    print(", ".join(f"{n} {state}" for state, n in counts.items() if n))
    print(done.index)
    for line in done.lost:
        print(f"lost: {line}", file=sys.stderr)
    raise typer.Exit(done.exit_code)


@app.command()
def plan(
    campaign: CampaignPath,
    effect: Annotated[
        float, typer.Option(help="True difference to be found, as a ratio: 0.03 is 3 %.")
    ] = 0.03,
    seed: Annotated[int, typer.Option(help="Of the run order.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Say how many repeats an arm a stated effect needs, in which order, with how many requests.

    Example: gpuverdict plan data/h200 --effect 0.03
    """
    from gpuverdict.case import open_campaign
    from gpuverdict.plan import affordable_order, plans_of_campaign

    measured, summary = open_campaign(campaign)
    plans = plans_of_campaign(measured, summary, effect=effect, seed=seed)
    if as_json:
        _print_json({"plans": [one.as_dict() for one in plans]})
        return
    for name, group in itertools.groupby(plans, key=lambda one: one.comparison):
        mine = list(group)
        print(f"{name}:")
        for one in mine:
            print(f"  {one}")
            for said in one.cautions:
                print(f"    {said}")
        order = affordable_order(mine)
        print(f"  order for {order['repeat_no'].max()} runs per arm:")
        print(textwrap.indent(order.to_string(index=False), "    "))


@app.command()
def record(
    out: Annotated[
        Path, typer.Option(help="File to write; `.gz` is not compressed, so that no row is lost.")
    ],
    interval_ms: Annotated[
        int, typer.Option("--interval-ms", help="10 to 10000.", min=10, max=10_000)
    ] = 100,
    gpu: Annotated[
        list[int] | None, typer.Option("--gpu", help="Index; may be given again. Default all.")
    ] = None,
) -> None:
    """Sample the GPUs of this host beside a test, until interrupted.

    Example: gpuverdict record --out trace.csv --interval-ms 100
    """
    from gpuverdict.record import record as sample

    sample(out, interval_ms=interval_ms, gpu=gpu)


@app.command()
def new(folder: Annotated[Path, typer.Argument(help="Folder to make.")]) -> None:
    """Make a campaign folder to fill in: commented campaign.yaml, recording commands, checklist.

    Example: gpuverdict new my-campaign
    """
    from gpuverdict.scaffold import new_campaign

    for path in new_campaign(folder):
        print(path)


@contextlib.contextmanager
def _progress(label: str) -> Iterator[tuple[Callable[[int], None], Callable[[str], None]]]:
    """Show a bar with the time left on a terminal, and nothing in a log file."""
    if not sys.stderr.isatty():
        yield (lambda total: None), (lambda name: None)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def step(name: str) -> None:
            bar.update(task, advance=1, description=f"{label} {escape(name)[:40]}")

        yield (lambda total: bar.update(task, total=total)), step


def _exit_with_losses(lost: list[str]) -> None:
    for line in lost:
        print(f"lost: {line}", file=sys.stderr)
    raise typer.Exit(1 if lost else 0)


if __name__ == "__main__":
    main()
