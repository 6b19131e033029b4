"""The calibration table is complete and can miss."""

from __future__ import annotations

import pytest
from tests.calibration import table
from tests.calibration.checks import Check, Reached

pytestmark = pytest.mark.calibration


def test_every_target_of_the_method_notes_has_a_row():
    checks = table.collect()
    assert {check.target for check in checks} == set(range(1, 42))
    assert len({check.name for check in checks}) == len(checks)


def test_the_table_prints_target_reached_and_error(capsys):
    assert table.main(["--fast", "--target", "15", "--target", "27"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["#", "check", "target"]
    assert lines[-1] == "0 missed"
    assert len(lines) == 4


def test_a_missed_target_is_said(monkeypatch, capsys):
    bad = Check(99, "bad", 0.5, 0.6, lambda n, random: Reached(0.1, 1000))
    monkeypatch.setattr(table, "collect", lambda: [bad])
    assert table.main(["--fast"]) == 1
    assert "MISSED" in capsys.readouterr().out
