"""Results in, display out: the first screen, the sections of a report, pages, XLSX and CSV."""

from __future__ import annotations

from gpuverdict.tables.answers import (
    capacity_table,
    claims_table,
    curve_table,
    findings_table,
    plain_table,
    sheets,
)
from gpuverdict.tables.appendix import glossary, provenance
from gpuverdict.tables.beside import host_table, server_table
from gpuverdict.tables.campaign import arms_table, coverage_table, missing_table
from gpuverdict.tables.cells import all_cells, verdict_map
from gpuverdict.tables.deliver import write_case
from gpuverdict.tables.devices import cards_table, growth_table, memory_table
from gpuverdict.tables.e2e import e2e_table
from gpuverdict.tables.export import write_csv, write_sheets, write_xlsx
from gpuverdict.tables.index import index_html
from gpuverdict.tables.listing import (
    REQUEST_COLUMNS,
    remark,
    request_frame,
    request_rows,
    run_rows,
)
from gpuverdict.tables.markup import Section
from gpuverdict.tables.page import report_html
from gpuverdict.tables.record import record_frame, record_table
from gpuverdict.tables.replies import (
    answer,
    campaign_answer,
    capacity_answer,
    claims_answer,
    power_answer,
    verdict_answer,
)
from gpuverdict.tables.rows import fixed_rows, knee_level
from gpuverdict.tables.screen import first_screen
from gpuverdict.tables.sections import figure_sheet, how_reached, run_table

__all__ = [
    "REQUEST_COLUMNS",
    "Section",
    "all_cells",
    "answer",
    "arms_table",
    "campaign_answer",
    "capacity_answer",
    "capacity_table",
    "cards_table",
    "claims_answer",
    "claims_table",
    "coverage_table",
    "curve_table",
    "e2e_table",
    "figure_sheet",
    "findings_table",
    "first_screen",
    "fixed_rows",
    "glossary",
    "growth_table",
    "host_table",
    "how_reached",
    "index_html",
    "knee_level",
    "memory_table",
    "missing_table",
    "plain_table",
    "power_answer",
    "provenance",
    "record_frame",
    "record_table",
    "remark",
    "report_html",
    "request_frame",
    "request_rows",
    "run_rows",
    "run_table",
    "server_table",
    "sheets",
    "verdict_answer",
    "verdict_map",
    "write_case",
    "write_csv",
    "write_sheets",
    "write_xlsx",
]
