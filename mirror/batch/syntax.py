"""The forms that names, labels, ports and paths must have, and what an API server says when they do not.

Each ``…_problems`` answers the server's sentences, none when the text is right. Lengths are in bytes. Which field it is
about is the business of the rules.
"""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST_ANNOTATIONS = 256 * 1024
"""Of one object: the bytes of all keys and values."""
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_LABEL_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_UNDERSCORE = _LABEL_UNDERSCORE + r"(\." + _LABEL_UNDERSCORE + ")*"
_NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_NAME_PART})?"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_HTTP_HEADER = "[-A-Za-z0-9]+"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_subdomain_underscore = re.compile(_SUBDOMAIN_UNDERSCORE).fullmatch
_is_name_part = re.compile(_NAME_PART).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_http_path = re.compile(_HTTP_PATH).fullmatch
_is_http_header = re.compile(_HTTP_HEADER).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search
_is_env_name = re.compile(r"[ -<>-~]*").fullmatch

_ALPHANUMERIC = "consist of lower case alphanumeric characters"
_ENDS = "and must start and end with an alphanumeric character"


def size(text: str) -> int:
    """How many bytes the server counts."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def segment_problems(value: str) -> list[str]:
    """A segment of a path."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{one}'" for one in "/%" if one in value]


def label_problems(value: str) -> list[str]:
    """A DNS label (RFC 1123)."""
    problems = _too_long(value, 63, "characters")
    if not _is_label(value):
        if _is_subdomain(value):
            problems.append("must not contain dots")
        else:
            words = f"a lowercase RFC 1123 label must {_ALPHANUMERIC} or '-', {_ENDS}"
            problems.append(_shape(words, _LABEL, "my-name", "123-abc"))
    return problems


def subdomain_problems(value: str, *, unit: str = "characters") -> list[str]:
    """A DNS subdomain (RFC 1123)."""
    problems = _too_long(value, 253, unit)
    if not _is_subdomain(value):
        words = f"a lowercase RFC 1123 subdomain must {_ALPHANUMERIC}, '-' or '.', {_ENDS}"
        problems.append(_shape(words, _SUBDOMAIN, "example.com"))
    return problems


def search_domain_problems(value: str) -> list[str]:
    """A DNS subdomain that may have underscores."""
    problems = _too_long(value, 253, "characters")
    if not _is_subdomain_underscore(value):
        words = f"a lowercase RFC 1123 subdomain must {_ALPHANUMERIC}, '_', '-' or '.', {_ENDS}"
        problems.append(_shape(words, _SUBDOMAIN_UNDERSCORE, "example.com"))
    return problems


def prefix_problems(value: str) -> list[str]:
    """A generateName: a subdomain, of which the end is still to come."""
    return subdomain_problems(value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value)


@lru_cache(maxsize=1024)
def qualified_name_problems(value: str) -> tuple[str, ...]:
    """The key of a label and its like: a name with an optional subdomain before a slash."""
    parts = value.split("/")
    if len(parts) > 2:
        prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_NAME_PART_SHAPE} {prefix}",)
    problems: list[str] = []
    if len(parts) == 2:
        told = subdomain_problems(parts[0], unit="bytes") if parts[0] else ["must be non-empty"]
        problems.extend(f"prefix part {one}" for one in told)
    name = parts[-1]
    told = _too_long(name, 63, "bytes") if name else ["must be non-empty"]
    problems.extend(f"name part {one}" for one in told)
    if not _is_name_part(name):
        problems.append(f"name part {_NAME_PART_SHAPE}")
    return tuple(problems)


def label_value_problems(value: str) -> list[str]:
    """The value of a label."""
    problems = _too_long(value, 63, "bytes")
    if not _is_label_value(value):
        words = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(_shape(words, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return problems


def http_path_problem(value: str) -> str:
    """A path as RFC 3986 has it; empty when it is right."""
    return "" if _is_http_path(value) else f"Invalid path (regex used for validation is '{_HTTP_PATH}')"


def http_header_problems(value: str) -> list[str]:
    """The name of an HTTP header."""
    words = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [] if _is_http_header(value) else [_shape(words, _HTTP_HEADER, "X-Header-Name")]


def port_name_problems(value: str) -> list[str]:
    """The name of a port."""
    problems = _too_long(value, 15, "characters")
    if not _is_port_name(value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def range_problems(value: int, first: int, last: int) -> list[str]:
    """A number between two others."""
    return [] if first <= value <= last else [f"must be between {first} and {last}, inclusive"]


def port_problems(value: int) -> list[str]:
    """The number of a port."""
    return range_problems(value, 1, 65535)


def id_problems(value: int) -> list[str]:
    """The id of a user or a group."""
    return range_problems(value, 0, 2**31 - 1)


def env_name_problems(value: str) -> list[str]:
    """The name of an environment variable; emptiness is the rules' matter."""
    if _is_env_name(value):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def config_key_problems(value: str) -> list[str]:
    """A key of a ConfigMap or a Secret."""
    problems = _too_long(value, 253, "characters")
    if not _is_config_key(value):
        words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(_shape(words, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if value in (".", ".."):
        problems.append(f"must not be '{value}'")
    elif value.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def backstep_problems(path: str) -> list[str]:
    """A path that does not climb."""
    return ["must not contain '..'"] if ".." in path.split("/") else []


def descending_path_problems(path: str) -> list[str]:
    """A relative path that does not climb."""
    return [*(["must be a relative path"] if path.startswith("/") else []), *backstep_problems(path)]


def local_path_problems(path: str) -> list[str]:
    """A relative path that does not climb and does not begin with two dots."""
    reserved = path.startswith("..") and not path.startswith("../")
    # A path that is ".." alone has both problems, as the server has it.
    return [*descending_path_problems(path), *(["must not start with '..'"] if reserved else [])]


def _too_long(value: str, limit: int, unit: str) -> list[str]:
    return [f"must be no more than {limit} {unit}"] if size(value) > limit else []


def _shape(words: str, expression: str, *examples: str) -> str:
    shown = " or ".join(f"'{one}', " for one in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{expression}')"


_NAME_PART_SHAPE = _shape(
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}", _NAME_PART, "MyName", "my.name", "123-abc"
)
