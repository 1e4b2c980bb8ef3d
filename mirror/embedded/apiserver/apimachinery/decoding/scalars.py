"""What is wrong with a time, a quantity or base64 text, in the words of the library that the server reads it with."""

from __future__ import annotations

import re
from datetime import date

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.durations import told

_SECONDS, _MICRO = "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.000000Z07:00"
_ELEMENTS = ("2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", ".000000", "Z07:00")
_RANGES = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}
_FRACTION = re.compile(r"[.,][0-9]+")
_ZONE = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")

_SPLIT = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_QUANTITY = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_SUFFIX = re.compile(r"(?:|[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)")


def time_complaint(text: str, *, is_micro: bool = False) -> str:
    """What is wrong with an RFC 3339 time, or nothing. ``is_micro``: it must have exactly six digits of a fraction."""
    rest, parts = text, {}
    layout = _MICRO if is_micro else _SECONDS

    def failed(element: str, problem: str = "") -> str:
        if problem:
            return f"parsing time {told(text)}: {problem}"
        return f"parsing time {told(text)} as {quoted(layout)}: cannot parse {told(rest)} as {quoted(element)}"

    for element in _ELEMENTS:
        if element == ".000000" and not is_micro:
            fraction = _FRACTION.match(rest)
            rest = rest[fraction.end() :] if fraction else rest
            continue
        found = _take(element, rest)
        if found is None:
            return failed(element)
        parts[element], rest = found, rest[len(found) :]
        problem = _range_problem(element, found)
        if problem:
            return failed(element, problem)
    if rest:
        return failed("", f"extra text: {told(rest)}")
    return _day_problem(parts, failed)


def _take(element: str, rest: str) -> str | None:
    """The beginning of the text that is this element of the layout."""
    shape = {
        "2006": "[0-9]{4}",
        "15": "[0-9]{1,2}",
        ".000000": "[.,][0-9]{6}",
        "Z07:00": _ZONE.pattern,
    }.get(element) or ("[0-9]{2}" if element.isdigit() else re.escape(element))
    found = re.match(shape, rest)
    return found[0] if found else None


def _range_problem(element: str, found: str) -> str:
    if element in _RANGES:
        name, least, most = _RANGES[element]
        return "" if least <= int(found) <= most else f"{name} out of range"
    if element == "Z07:00" and found != "Z":
        if int(found[1:3]) > 24:
            return "time zone offset hour out of range"
        if int(found[4:6]) >= 60:
            return "time zone offset minute out of range"
    return ""


def _day_problem(parts: dict[str, str], failed: object) -> str:
    year, month, day = int(parts["2006"]), int(parts["01"]), int(parts["02"])
    try:
        date(year or 4, month, day)  # the year 0, which Python has not, is a leap year
    except ValueError:
        assert callable(failed)
        return str(failed("", "day out of range"))
    return ""


def quantity_complaint(text: str) -> str:
    """What is wrong with a quantity, or nothing."""
    text = text.strip()
    found = _QUANTITY.fullmatch(text) if text else None
    if found is None:
        return f"quantities must match the regular expression '{_SPLIT}'"
    if not _SUFFIX.fullmatch(found[1]):
        return "unable to parse quantity's suffix"
    if quantities.parse(text) is None:
        return "unable to parse numeric part of quantity"
    return ""


def base64_complaint(text: str) -> str:
    """What is wrong with base64 text, or nothing; line ends in it are fine."""
    if _BASE64.fullmatch(text.replace("\n", "").replace("\r", "")):
        return ""
    return f"illegal base64 data at input byte {_first_illegal(text)}"


def _first_illegal(text: str) -> int:
    """Where decoding stops: the first byte that cannot be there, or the end of what is too short."""
    seen, data = 0, text.encode(errors="replace")
    for position, code in enumerate(data):
        if code in b"\r\n":
            continue
        if code == ord("="):
            return _padding(data, position, seen % 4)
        if not (chr(code).isalnum() and code < 128) and code not in b"+/":
            return position
        seen += 1
    return len(data) - seen % 4 if seen % 4 else len(data)


def _padding(data: bytes, position: int, column: int) -> int:
    """``position`` is that of the first ``=``, in this column of four."""
    if column < 2:
        return position
    following = position + 1
    if column == 2:
        while following < len(data) and data[following] in b"\r\n":
            following += 1
        if following == len(data):
            return len(data)
        if data[following] != ord("="):
            return position
        following += 1
    while following < len(data) and data[following] in b"\r\n":
        following += 1
    return following
