"""Results in, display out: the first screen, the sections of a report, pages, XLSX and CSV."""

from __future__ import annotations

from gpuverdict.tables.export import write_csv, write_xlsx
from gpuverdict.tables.markup import Section
from gpuverdict.tables.page import report_html
from gpuverdict.tables.rows import fixed_rows, knee_level
from gpuverdict.tables.screen import first_screen
from gpuverdict.tables.sections import (
    all_cells,
    figure_sheet,
    glossary,
    how_reached,
    provenance,
    run_table,
    verdict_map,
)

__all__ = [
    "Section",
    "all_cells",
    "figure_sheet",
    "first_screen",
    "fixed_rows",
    "glossary",
    "how_reached",
    "knee_level",
    "provenance",
    "report_html",
    "run_table",
    "verdict_map",
    "write_csv",
    "write_xlsx",
]
