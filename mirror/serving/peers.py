"""Whom a connection counts for: an address, or the network of one that may have as many as it likes. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

_HOST_BITS = 64
"""Of an IPv6 address: whoever has one has the whole network of it (RFC 4291)."""


def peer_of(address: str) -> str:
    """An IPv4 address as it is, an IPv6 address as its /64; anything else as it is."""
    try:
        found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{IPv6Address(int(found) >> _HOST_BITS << _HOST_BITS)}/64"
