"""A draft of `campaign.yaml` for a folder nobody has described: what the logs say, and no more."""

from __future__ import annotations

from gpuverdict.draft.writing import draft_campaign

__all__ = ["draft_campaign"]
