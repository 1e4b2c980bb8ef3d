"""Ranges of addresses (CIDRs): of nodes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

from mirror.batch.quoting import json_texts
from mirror.batch.violations import Violation, invalid, invalid_text

_LEADING_ZEROS = re.compile(r"\b0+(?=[0-9])")


def check_list(field: str, ranges: Sequence[str]) -> Iterator[Violation]:
    """At most one range of each family, each of them right."""
    for position, text in enumerate(ranges):
        yield from _check(f"{field}[{position}]", text)
    if len(ranges) < 2:
        return
    networks = [_network(text) for text in ranges]
    if None in networks:
        position = networks.index(None)
        why = f"invalid CIDR[{position}]: <nil> (invalid CIDR address: {ranges[position]})"
        yield internal_error(field, f"invalid PodCIDRs. failed to check with dual stack with error:{why}")
    if None in networks or sorted(one.version for one in networks if one) != [4, 6]:
        yield invalid(field, json_texts(ranges), "may specify no more than one CIDR for each IP family")


def internal_error(field: str, detail: str) -> Violation:
    """A rule itself could not be applied."""
    return Violation(field, "InternalError", f"Internal error: {detail}")


def _check(field: str, text: str) -> Iterator[Violation]:
    network, plain = _network(text), _plain(text)
    if network is None:
        yield invalid_text(field, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
        return
    own = ipaddress.ip_address(plain.partition("/")[0])
    if plain != text:
        yield invalid_text(field, text, "must not have leading 0s in IP or prefix length")
    elif isinstance(own, ipaddress.IPv6Address) and own.ipv4_mapped is not None:
        yield invalid_text(field, text, "must not have an IPv4-mapped IPv6 address")
    elif own != network.network_address:
        yield invalid_text(field, text, "must not have bits set beyond the prefix length")


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The range, whatever bits are set in its address; None if it is none."""
    prefix = text.partition("/")[2]
    try:
        return ipaddress.ip_network(_plain(text), strict=False) if prefix.isdecimal() and prefix.isascii() else None
    except ValueError:
        return None


def _plain(text: str) -> str:
    """Without leading zeros, which mean nothing."""
    address, slash, prefix = text.partition("/")
    if ":" not in address:
        return _LEADING_ZEROS.sub("", text)
    return address + slash + _LEADING_ZEROS.sub("", prefix)
