"""`make bench`: every speed and memory figure of the design, as one table after another.

`python -m tests.benchmarks --wide` also ingests fifty files of 88 MB.
"""

from __future__ import annotations

import sys

from tests.benchmarks import bench_read, bench_suite

bench_read.main()
bench_suite.main("--wide" in sys.argv)
