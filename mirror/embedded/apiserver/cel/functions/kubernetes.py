"""Kubernetes' own types: quantities, URLs, addresses, ranges. Pure; more are in ``forms``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.apiserver.cel import values
from mirror.embedded.apiserver.cel.functions.declared import Overload, overload, traversal
from mirror.embedded.apiserver.cel.times import EvaluationError


def overloads() -> Iterator[Overload]:
    """All of them."""
    yield from _quantities()
    yield from _urls()
    yield from _addresses()


# -- quantities -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount; those of one size are equal, however they are written."""

    TYPE: ClassVar[str] = "kubernetes.Quantity"
    nano: int

    @property
    def is_integer(self) -> bool:
        return self.nano % quantities.NANO == 0 and -(2**63) <= self.nano // quantities.NANO < 2**63


def _quantities() -> Iterator[Overload]:
    yield overload("quantity(string)quantity", _quantity, traversal())
    yield overload("isQuantity(string)bool", lambda text: quantities.parse(text) is not None, traversal())
    yield overload("sign(quantity)int", lambda one: (one.nano > 0) - (one.nano < 0))
    yield overload(".sign(quantity)int", lambda one: (one.nano > 0) - (one.nano < 0))
    yield overload(".isGreaterThan(quantity,quantity)bool", lambda one, other: one.nano > other.nano)
    yield overload(".isLessThan(quantity,quantity)bool", lambda one, other: one.nano < other.nano)
    yield overload(
        ".compareTo(quantity,quantity)int", lambda one, other: (one.nano > other.nano) - (one.nano < other.nano)
    )
    yield overload(".asApproximateFloat(quantity)double", lambda one: one.nano / quantities.NANO)
    yield overload(".asInteger(quantity)int", _as_integer)
    yield overload(".isInteger(quantity)bool", lambda one: one.is_integer)
    yield overload(".add(quantity,quantity)quantity", lambda one, other: Quantity(one.nano + other.nano))
    yield overload(".add(quantity,int)quantity", lambda one, other: Quantity(one.nano + other * quantities.NANO))
    yield overload(".sub(quantity,quantity)quantity", lambda one, other: Quantity(one.nano - other.nano))
    yield overload(".sub(quantity,int)quantity", lambda one, other: Quantity(one.nano - other * quantities.NANO))


def _quantity(text: str) -> Quantity:
    found = quantities.parse(text)
    if found is None:
        wrong = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise EvaluationError(wrong)
    return Quantity(found.nano)


def _as_integer(one: Quantity) -> int:
    if not one.is_integer:
        raise EvaluationError("cannot convert value to integer")
    return one.nano // quantities.NANO


# -- URLs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute URI, or an absolute path."""

    TYPE: ClassVar[str] = "kubernetes.URL"
    scheme: str
    host: str
    path: str
    query: str


_BAD_URL = re.compile(r"[\x00-\x20\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*", re.ASCII)
_PORT = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::(\d*))?", re.ASCII)
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _urls() -> Iterator[Overload]:
    yield overload("url(string)url", url, traversal())
    yield overload("isURL(string)bool", can(url))
    yield overload(".getScheme(url)string", lambda one: one.scheme)
    yield overload(".getHost(url)string", lambda one: one.host)
    yield overload(".getHostname(url)string", lambda one: _host_and_port(one.host)[0])
    yield overload(".getPort(url)string", lambda one: _host_and_port(one.host)[1])
    yield overload(".getEscapedPath(url)string", lambda one: quote(unquote(one.path), safe="/:@!$&'()*+,;=-._~"))
    yield overload(".getQuery(url)map(string,list(string))", lambda one: parse_qs(one.query, keep_blank_values=True))


def can(work: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether a text can be read."""

    def does(text: str) -> bool:
        try:
            work(text)
        except EvaluationError:
            return False
        return True

    return does


def url(text: str) -> Url:
    """Raises EvaluationError: it is none."""
    wrong = f'URL parse error during conversion from string: parse "{text}": invalid URI for request'
    if not text or _BAD_URL.search(text) or _PERCENT.search(text):
        raise EvaluationError(wrong)
    if text.startswith("/"):
        path, _, query = text.partition("?")
        if text.startswith("//"):
            split = urlsplit(text)
            return Url("", split.netloc, split.path, split.query)
        return Url("", "", path, query)
    scheme, colon, rest = text.partition(":")
    if not colon or not _SCHEME.fullmatch(scheme) or not rest.startswith("/"):
        raise EvaluationError(wrong)
    path, _, query = rest.partition("?")
    host = ""
    if path.startswith("//"):
        host, slash, path = path[2:].partition("/")
        path = slash + path
        host = host.rpartition("@")[2]
        if not _PORT.fullmatch(host):
            raise EvaluationError(wrong)
    return Url(scheme.lower(), host, path, query)


def _host_and_port(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if not colon or not (port.isdigit() or not port) or host.endswith("]"):
        name, port = host, ""
    return name.removeprefix("[").removesuffix("]"), port


# -- addresses --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address."""

    TYPE: ClassVar[str] = "net.IP"
    value: ipaddress.IPv4Address | ipaddress.IPv6Address

    @property
    def SIZE(self) -> int:  # noqa: N802  # as other types have it
        return len(self.value.packed)

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Range:
    """An address and how long its prefix is."""

    TYPE: ClassVar[str] = "net.CIDR"
    value: ipaddress.IPv4Interface | ipaddress.IPv6Interface

    @property
    def SIZE(self) -> int:  # noqa: N802  # as other types have it
        return -(-self.value.network.prefixlen // 8)

    def __str__(self) -> str:
        return str(self.value)


def _addresses() -> Iterator[Overload]:
    yield overload("ip(string)ip", _ip, traversal())
    yield overload("isIP(string)bool", can(_ip), traversal())
    yield overload("string(ip)string", str)
    yield overload("ip.isCanonical(string)bool", lambda text: str(_ip(text)) == text, traversal(0.2))
    yield overload(".family(ip)int", lambda one: one.value.version)
    yield overload(".isUnspecified(ip)bool", lambda one: one.value.is_unspecified)
    yield overload(".isLoopback(ip)bool", lambda one: one.value.is_loopback)
    yield overload(".isLinkLocalMulticast(ip)bool", _is_link_local_multicast)
    yield overload(".isLinkLocalUnicast(ip)bool", lambda one: one.value.is_link_local)
    yield overload(".isGlobalUnicast(ip)bool", _is_global)
    yield overload("cidr(string)cidr", _cidr, traversal())
    yield overload("isCIDR(string)bool", can(_cidr), traversal())
    yield overload("string(cidr)string", str)
    yield overload(".containsIP(cidr,ip)bool", lambda one, other: _holds(one, other), _of_containing)
    yield overload(".containsIP(cidr,string)bool", lambda one, text: _holds(one, _ip(text)), _of_containing)
    yield overload(".containsCIDR(cidr,cidr)bool", _holds_range, _of_containing_range)
    yield overload(
        ".containsCIDR(cidr,string)bool", lambda one, text: _holds_range(one, _cidr(text)), _of_containing_range
    )
    yield overload(".ip(cidr)ip", lambda one: Address(one.value.ip))
    yield overload(".prefixLength(cidr)int", lambda one: one.value.network.prefixlen)
    yield overload(".masked(cidr)cidr", lambda one: Range(ipaddress.ip_interface(one.value.network.with_prefixlen)))


def _of_containing(arguments: Sequence[Any], result: Any) -> int:
    size, other = map(values.size_of, arguments)
    return -(-size * 2 // 10) + (-(-other // 10) if isinstance(arguments[1], str) else 0)


def _of_containing_range(arguments: Sequence[Any], result: Any) -> int:
    size = values.size_of(arguments[0])
    return _of_containing(arguments, result) + -(-size // 10) + 1


def _ip(text: str) -> Address:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise EvaluationError(f'IP Address "{text}" parse error during conversion from string: {_why(text)}') from None
    if getattr(found, "scope_id", None):
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    if getattr(found, "ipv4_mapped", None):
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return Address(found)


def _why(text: str) -> str:
    return f'ParseAddr("{text}"): unable to parse IP'


_BAD_RANGE = "network address parse error during conversion from string: "


def _cidr(text: str) -> Range:
    address, slash, length = text.partition("/")
    try:
        if not slash or not (length.isascii() and length.isdigit()) or (length[0] == "0" and length != "0"):
            raise ValueError
        found = ipaddress.ip_interface(text)
    except ValueError:
        wrong = f"{_BAD_RANGE}{_BAD_RANGE}netip.ParsePrefix({quoted(text)}): no '/'"
        raise EvaluationError(wrong) from None
    if getattr(found.ip, "ipv4_mapped", None) or "%" in address:
        raise EvaluationError(f"{_BAD_RANGE}{quoted(text)} is not allowed")
    return Range(found)


def _holds(one: Range, other: Address) -> bool:
    return one.value.version == other.value.version and other.value in one.value.network


def _holds_range(one: Range, other: Range) -> bool:
    network, inner = one.value.network, other.value.network
    if one.value.version != other.value.version:
        return False
    return other.value.ip in network and inner.prefixlen >= network.prefixlen


def _is_link_local_multicast(one: Address) -> bool:
    if isinstance(one.value, ipaddress.IPv4Address):
        return one.value in ipaddress.ip_network("224.0.0.0/24")
    return one.value.packed[0] == 0xFF and one.value.packed[1] & 0x0F == 2


def _is_global(one: Address) -> bool:
    value = one.value
    if value == ipaddress.ip_address("255.255.255.255"):
        return False
    return not (value.is_unspecified or value.is_loopback or value.is_multicast or value.is_link_local)
