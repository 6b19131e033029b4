"""A Dask scheduler as a place to run the same code on."""

from __future__ import annotations

from typing import Any

from gpuverdict.errors import ParameterError

__all__ = ["connect_cluster"]

_CONNECT_S = 20


def connect_cluster(cluster: str, *, default: bool = False) -> Any:
    """Return a client of a Dask scheduler.

    Parameters
    ----------
    cluster : str
        Its address.
    default : bool
        Whether joblib is to find it.

    Raises
    ------
    ParameterError
        When no scheduler answers there.
    """
    import logging

    from distributed import Client

    # It tells every failed attempt; one line at the end says the same.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        return Client(cluster, timeout=_CONNECT_S, set_as_default=default)
    except (OSError, ValueError) as problem:
        first = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise ParameterError(
            f"--cluster {cluster}", found=f"no scheduler ({first[:120]})",
            expected="the address of a Dask scheduler, such as tcp://host:8786",
        ) from None  # fmt: skip
