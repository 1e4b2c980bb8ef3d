"""Formats of texts that a schema may ask for. Others are no rule, as with kube-apiserver. Pure."""

from __future__ import annotations

import binascii
import ipaddress
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime

_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}([.,]\d+)?([Zz]|[+-]\d{2}:?\d{2})?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_HOST = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?", re.ASCII)
_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}([:-][0-9A-Fa-f]{2}){0,2}", re.ASCII)
_DURATION = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w)((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w))*")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+|/\S*")


def fits(format_: str, text: str) -> bool:
    """Whether a text is of this format; true for formats that are none."""
    check = _CHECKS.get(format_)
    return check is None or check(text)


def _is_date_time(text: str) -> bool:
    if not _DATE_TIME.fullmatch(text):
        return False
    return _does(lambda: datetime.fromisoformat(f"{text[:10]}T{text[11:19]}"))


def _is_base64(text: str) -> bool:
    return _does(lambda: b64decode(text, validate=True))


def _does(work: Callable[[], object]) -> bool:
    try:
        work()
    except (ValueError, binascii.Error):
        return False
    return True


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "date": lambda text: len(text) == 10 and _does(lambda: date.fromisoformat(text)),
    "byte": _is_base64,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "ipv4": lambda text: _does(lambda: ipaddress.IPv4Address(text)),
    "ipv6": lambda text: _does(lambda: ipaddress.IPv6Address(text)),
    "cidr": lambda text: "/" in text and _does(lambda: ipaddress.ip_network(text, strict=False)),
    "hostname": lambda text: len(text) <= 255 and _HOST.fullmatch(text) is not None,
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "duration": lambda text: _DURATION.fullmatch(text.replace(" ", "")) is not None,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "uri": lambda text: _URI.fullmatch(text) is not None,
}
