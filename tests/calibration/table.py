"""Print target, reached and Monte Carlo error of every calibration check (`make calibrate`)."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from tests.calibration.checks import Check


def collect() -> list[Check]:
    """Gather the checks of every `checks*.py` beside this file, by target number."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("checks*.py"))
    found = [c for n in names for c in importlib.import_module(f"tests.calibration.{n}").CHECKS]
    return sorted(found, key=lambda check: check.target)


def main(arguments: list[str] | None = None) -> int:
    """Run all checks and print one line each; the exit status is 1 when any misses its band."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="the small n of the test suite")
    parser.add_argument("--target", type=int, action="append", help="only these target numbers")
    chosen = parser.parse_args(arguments)
    print(f"{'#':>3} {'check':60} {'target':>15} {'reached':>9} {'error':>7} {'n':>8}  s")
    missed = 0
    for check in collect():
        if chosen.target and check.target not in chosen.target:
            continue
        began = time.perf_counter()
        reached = check.reach(nightly=not chosen.fast)
        seconds = time.perf_counter() - began
        holds = check.holds(reached)
        missed += not holds
        scale = 100 if check.unit == "%" else 1
        band = f"{scale * check.low:.4g} to {scale * check.high:.4g} {check.unit}"
        print(
            f"{check.target:>3} {check.name:60} {band:>15} {scale * reached.value:>9.3f} "
            f"{scale * reached.error:>7.3f} {reached.n:>8}  {seconds:.1f}"
            + ("" if holds else "  MISSED"),
            flush=True,
        )
    print(f"{missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
