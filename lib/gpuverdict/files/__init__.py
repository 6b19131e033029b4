"""From a path to text: compression, encodings, archives, JSON of every quality, with limits.

Readers never open a path themselves. They get a `Document`: the decoded bytes of one log, its
hash, its JSON records, and the cautions met on the way.
"""

from __future__ import annotations

from gpuverdict.files.documents import Document, ReadOptions, open_documents
from gpuverdict.files.records import Records, parse_records

__all__ = ["Document", "ReadOptions", "Records", "open_documents", "parse_records"]
