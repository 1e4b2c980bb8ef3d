"""Proxies of the environment (``HTTPS_PROXY``, ``NO_PROXY``), which kubectl honours, too. What runs here needs none."""

from __future__ import annotations

import os
from ipaddress import ip_address
from urllib.parse import urlsplit


def proxy_for(url: str) -> str:
    """The proxy that the environment names for this URL; empty for none."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not any(name.lower().endswith("_proxy") for name in os.environ) or _is_here(host):
        return ""
    from urllib.request import getproxies_environment, proxy_bypass

    if proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return ""
    return getproxies_environment().get(parts.scheme, "")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
