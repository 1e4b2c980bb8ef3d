"""Which hosts a worker's kubeconfig may lead us to. Pure.

``kubeconfig`` asks about the host as it is written, ``transport`` again about each address that a name resolves to.
Whoever may write a worker's Secret must not be able to send our requests to our own machine, or to the services that
hand out cloud credentials (docs/libraries.md).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA_NAMES = frozenset(
    {
        "metadata",
        "metadata.goog",
        "metadata.google.internal",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
        "instance-data",
        "instance-data.ec2.internal",
    }
)
_LOOPBACK_NAMES = frozenset({"localhost", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback", "loopback"})
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")

_METADATA_NETWORKS = tuple(
    ipaddress.ip_network(text)
    for text in (
        "100.100.100.200/32",  # Alibaba Cloud
        "168.63.129.16/32",  # Azure's wire server
        "192.0.0.192/32",  # Oracle Cloud
        "fd00:ec2::/32",  # AWS: instance metadata, pod identity, DNS, time
        "fd20:ce::254/128",  # Google Cloud
        "fd00:42::42/128",  # Scaleway
    )
)
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_THIS_NETWORK = ipaddress.IPv4Network("0.0.0.0/8")

LOOPBACK = "it is a loopback address"


def judge_host(host: str) -> str | None:
    """Why a host must not be talked to, or None; ``LOOPBACK`` is the one reason that can be opted in.

    ``host`` is a name or an address as in a URL, an IPv6 address without its brackets.
    """
    if ":" in host:
        try:
            return judge_address(ipaddress.IPv6Address(host))
        except ValueError:
            return "it is not an address"
    name = host.rstrip(".").lower()
    if _is_numeric(name):
        return _judge_numeric(host)
    if not _NAME.fullmatch(name):
        return "it is not a host name"
    if name in _LOOPBACK_NAMES or name.split(".")[0] == "localhost" or name.endswith(".localhost"):
        return LOOPBACK
    if name in _METADATA_NAMES:
        return "it is a cloud's metadata service"
    return None


def judge_address(address: Address) -> str | None:
    """As ``judge_host``, for an address; one that is wrapped in another is judged as well."""
    for found in (address, *_wrapped(address)):
        if found.is_loopback:
            return LOOPBACK
        if found.is_link_local:
            return "it is a link-local address, where metadata services live"
        if found.is_unspecified or found in _THIS_NETWORK:
            return "it is the unspecified address"
        if found.is_multicast or found == ipaddress.IPv4Address("255.255.255.255"):
            return "it is a multicast or broadcast address"
        if any(found in network for network in _METADATA_NETWORKS):
            return "it is a cloud's metadata service"
    return None


def refuser(*, allow_loopback: bool) -> Callable[[str], str | None]:
    """What ``transport`` asks about each address before it connects: why not, or None."""

    def refuse(address: str) -> str | None:
        why = judge_host(address)
        return None if why == LOOPBACK and allow_loopback else why

    return refuse


def _is_numeric(name: str) -> bool:
    """Whether the system would take it for an IPv4 address: 127.1, 0x7f000001, 2130706433 and the like."""
    return bool(_NUMBER.fullmatch(name.rpartition(".")[2]))


def _judge_numeric(host: str) -> str | None:
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError:
        return "it is an address in an unusual spelling; write four decimal numbers"
    return judge_address(address)


def _wrapped(address: Address) -> list[Address]:
    """The IPv4 addresses that an IPv6 one leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found: list[Address] = []
    if address.ipv4_mapped is not None:
        found.append(address.ipv4_mapped)
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found += address.teredo
    # ::1 and :: are themselves, not IPv4 addresses in disguise.
    if any(address in network for network in _NAT64) or (address in _COMPATIBLE and int(address) > 1):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return found
