"""Our own version, for ``mirror version``, the User-Agent and the build metric."""

from __future__ import annotations

from functools import cache


@cache
def version() -> str:
    """The installed version, or ``0+unknown`` where the package runs from a checkout that was never installed."""
    from importlib import metadata  # not at the top: it costs 20 ms, which `mirror --help` need not

    try:
        return metadata.version("jobmirror")
    except metadata.PackageNotFoundError:
        return "0+unknown"
