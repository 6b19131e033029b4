"""A campaign folder to fill in: commented keys, the commands to record with, a checklist."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from gpuverdict.campaign import key_table
from gpuverdict.errors import ParameterError

__all__ = ["new_campaign"]

_FILES = ("campaign.yaml", "RECORDING.md", "CHECKLIST.md")


def new_campaign(folder: str | Path) -> list[Path]:
    """Make a campaign folder.

    Parameters
    ----------
    folder : path
        Made if it does not exist; nothing in it is ever overwritten.

    Returns
    -------
    list of Path
        The files written: `campaign.yaml`, `RECORDING.md`, `CHECKLIST.md`, `KEYS.md`.

    Raises
    ------
    ParameterError
        When one of the files is there already.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     [path.name for path in new_campaign(Path(place) / "mine")]
    ['campaign.yaml', 'RECORDING.md', 'CHECKLIST.md', 'KEYS.md']
    """
    place = Path(folder)
    taken = [name for name in (*_FILES, "KEYS.md") if (place / name).exists()]
    if taken:
        raise ParameterError(place, found=f"{taken[0]} in it", expected="a new folder")
    place.mkdir(parents=True, exist_ok=True)
    for arm in ("baseline", "candidate"):
        (place / "logs" / arm).mkdir(parents=True, exist_ok=True)
    templates = resources.files("gpuverdict").joinpath("templates", "new")
    written = []
    for name in _FILES:
        path = place / name
        path.write_text(templates.joinpath(name).read_text(encoding="utf-8"), encoding="utf-8")
        written.append(path)
    keys = place / "KEYS.md"
    keys.write_text(f"# Every key of campaign.yaml\n\n{key_table()}\n", encoding="utf-8")
    return [*written, keys]
