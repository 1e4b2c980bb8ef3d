"""Who may be named as the server (``Host``): a guard against foreign pages that have their name point at us. Pure.

DNS rebinding makes a browser believe that ``evil.example`` is 127.0.0.1, where a port-forward leads to this page; its
scripts could then read it. Such a request names ``evil.example``. An address or ``localhost`` cannot be rebound.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address


def is_ours(host: str | None, *, known: Collection[str]) -> bool:
    """Whether a ``Host`` header names us.

    Args:
        host: as it came; with or without a port.
        known: names by which proxies call us, in lower case.
    """
    name = _name(host or "")
    if name in known or name == "localhost" or name.endswith(".localhost"):
        return bool(name)
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _name(host: str) -> str:
    """Without port, brackets and the dot at the end."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].rstrip(".").lower()
