"""What a text of a setting must be: names as Kubernetes has them, addresses; for the table in ``rules``.

Each function reads one value and raises ``Unexpected``; the rule that uses it says what was expected.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from mirror.model import names
from mirror.settings.rule import Unexpected

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
DNS_LABEL = re.compile(_LABEL)
_SUBDOMAIN = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_VALUE = re.compile(rf"({_NAME})?")
_KEY_NAME = re.compile(_NAME)
KEY_GLOB = re.compile(r"[-A-Za-z0-9_./*?\[\]!]{1,317}")
NAMESPACE_GLOB = re.compile(r"[-a-z0-9*?\[\]!]{1,63}")
_MANAGED_BY_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%a-z]+\]|[^\[\]:\s/]*):(?P<port>[0-9]{1,5})")
DATA_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")
SECRET_TYPE = re.compile(r"[-._/A-Za-z0-9]{0,253}")
_SELECTOR_KEY = rf"([a-z0-9][-a-z0-9.]{{0,252}}/)?{_NAME}"
_REQUIREMENT = re.compile(
    rf"!?\s*{_SELECTOR_KEY}|{_SELECTOR_KEY}\s*(=|==|!=)\s*({_NAME})?"
    rf"|{_SELECTOR_KEY}\s+(in|notin)\s*\(\s*{_NAME}(\s*,\s*{_NAME})*\s*\)"
)
_REQUIREMENT_END = re.compile(r",(?![^()]*\))")
"""A comma that is not within parentheses."""
_LONGEST_SELECTOR = 1024


def split_address(text: str) -> tuple[str, int]:
    """Host without brackets, and port, of ``127.0.0.1:8080``, ``[::1]:8080`` or ``:8080``.

    Raises:
        ValueError: it is not such a text.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise ValueError(text)
    return found["host"].strip("[]"), int(found["port"])


def as_text(value: object) -> str:
    if not isinstance(value, str):
        raise Unexpected
    return value


def managed_by(value: object) -> str:
    text = as_text(value)
    domain, slash, path = text.partition("/")
    if text == names.BUILT_IN_MANAGED_BY:
        raise Unexpected("those Jobs belong to the built-in Job controller")
    if not (slash and _SUBDOMAIN.fullmatch(domain) and _MANAGED_BY_PATH.fullmatch(path)) or len(text.encode()) > 63:
        raise Unexpected
    return text


def path(value: object) -> str:
    text = as_text(value)
    if "\0" in text:
        raise Unexpected
    return text


def address(value: object) -> str:
    text = as_text(value)
    try:
        split_address(text)
    except ValueError:
        raise Unexpected from None
    return text


def host(value: object) -> str:
    text = as_text(value)
    with suppress(ValueError):
        return str(ipaddress.ip_address(text))
    if not _SUBDOMAIN.fullmatch(text.removeprefix("*.")):
        raise Unexpected
    return text


def ip_address(value: object) -> str:
    """One, or empty text."""
    text = as_text(value)
    try:
        return str(ipaddress.ip_address(text)) if text else text
    except ValueError:
        raise Unexpected from None


def https_url(value: object) -> str:
    return _url(value, ("https",))


def http_url(value: object) -> str:
    return _url(value, ("http", "https"))


def _url(value: object, schemes: tuple[str, ...]) -> str:
    """An address without user, query and fragment, and without a slash at its end."""
    text = as_text(value)
    if not text:
        return text
    try:
        parts = urlsplit(text)
        is_fine = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise Unexpected from None
    if parts.scheme not in schemes or not is_fine or parts.username is not None or parts.query or parts.fragment:
        raise Unexpected
    if not text.isascii() or not text.isprintable() or " " in text:
        raise Unexpected
    return text.rstrip("/")


def shaped(shape: re.Pattern[str]) -> Callable[[object], str]:
    """A text that is as this expression says, whole."""

    def read(value: object) -> str:
        text = as_text(value)
        if not shape.fullmatch(text):
            raise Unexpected
        return text

    return read


def selector(value: object) -> str:
    """Not empty: that would be all Secrets of a namespace."""
    text = as_text(value).strip()
    requirements = [part.strip() for part in _REQUIREMENT_END.split(text)]
    if len(text) > _LONGEST_SELECTOR or not all(_REQUIREMENT.fullmatch(one) for one in requirements):
        raise Unexpected
    return text


def label_key(value: object) -> str:
    text = as_text(value)
    if text and not is_key(text):
        raise Unexpected
    return text


def object_name(value: object) -> str:
    text = as_text(value)
    if text and not _SUBDOMAIN.fullmatch(text):
        raise Unexpected
    return text


def is_key(key: str) -> bool:
    """What Kubernetes calls a qualified name, for keys of labels and annotations."""
    domain, slash, name = key.rpartition("/")
    return bool(_KEY_NAME.fullmatch(name)) and (not slash or bool(_SUBDOMAIN.fullmatch(domain)))
