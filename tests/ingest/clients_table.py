"""Print how far each reader is from the server's truth, case by case and the worst per tool.

Run with `python -m tests.ingest.clients_table`. TPOT and TTFT are medians in milliseconds; the
distance of TTFT is that of the client, which was late on a shared machine in some runs.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.ingest.client_cases import Case, cases, truth_tpot_s, truth_ttft_s

from gpuverdict.recognise import read_run


def rows_of(case: Case) -> list[tuple[str, int, int, int, float | None, ...]]:
    """Compare each run of a case: counts, TPOT and TTFT of ours and of the server."""
    if case.log is None:
        return []
    runs = read_run(case.log)
    finished, out, at = case.finished(), [], 0
    for index, run in enumerate(runs):
        main = run.requests.filter(run.requests["phase"] == "main")
        ok = main.filter(main["status"] == "ok")
        own = finished
        if len(runs) > 1:
            own, at = finished[at : at + ok.height], at + ok.height
        label = str(case) if len(runs) == 1 else f"{case}[{index}]"
        ours, theirs = ok["tpot_s"].median(), truth_tpot_s(own)
        first, true_first = ok["ttft_s"].median(), truth_ttft_s(own)
        out.append((label, ok.height, main.height - ok.height, len(own), ours, theirs, first,
                    true_first))  # fmt: skip
    return out


def main() -> None:
    """Print the table and the worst figures."""
    print(f"{'case':46}{'ok':>5}{'not':>5}{'srv':>5}{'TPOT':>9}{'srv':>9}{'diff':>8}"
          f"{'TTFT':>9}{'srv':>9}{'late':>8}")  # fmt: skip
    worst: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for case in cases():
        for label, ok, bad, n, tpot, true_tpot, ttft, true_ttft in rows_of(case):
            cells = [f"{label:46}{ok:5}{bad:5}{n:5}"]
            difference = None
            if tpot and true_tpot:
                difference = tpot / true_tpot - 1
                cells.append(f"{tpot * 1e3:9.3f}{true_tpot * 1e3:9.3f}{difference:8.2%}")
            else:
                cells.append(f"{'-':>9}{'-':>9}{'-':>8}")
            if ttft and true_ttft:
                late = ttft - true_ttft
                cells.append(f"{ttft * 1e3:9.2f}{true_ttft * 1e3:9.2f}{late * 1e3:8.2f}")
                if case.normal:
                    figures = worst[case.version]
                    figures[1] = max(figures[1], late * 1e3)
                    figures[2] = max(figures[2], late / true_ttft)
            if case.normal and difference is not None:
                worst[case.version][0] = max(worst[case.version][0], abs(difference))
            print("".join(cells))
    print("\nworst of the normal cases: |TPOT| difference, TTFT late ms, TTFT late ratio")
    for version, (tpot_off, late_ms, late_ratio) in sorted(worst.items()):
        print(f"{version:28}{tpot_off:8.2%}{late_ms:9.1f}{late_ratio:9.1%}")


if __name__ == "__main__":
    main()
