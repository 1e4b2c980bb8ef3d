"""Times as people say them: how long ago, and exactly when in the title. Pure; the browser keeps them going."""

from __future__ import annotations

from datetime import UTC, datetime

from mirror.page.markup import Html, tag

_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
_TWO_UNITS_BELOW = {"d": 10, "h": 10, "min": 5}
"""Up to here the next smaller unit says something, too. ``page.js`` has the same rules."""


def span(seconds: float) -> str:
    """``12 s``, ``3 min 20 s``, ``7 min``, ``2 h 5 min``, ``3 d 4 h``, ``40 d``; what is below a second is ``0 s``."""
    whole = max(0, int(seconds))
    for number, (unit, size) in enumerate(_UNITS):
        if whole >= size or unit == "s":
            count, rest = divmod(whole, size)
            if count < _TWO_UNITS_BELOW.get(unit, 0):
                smaller, smaller_size = _UNITS[number + 1]
                if rest >= smaller_size:
                    return f"{count} {unit} {rest // smaller_size} {smaller}"
            return f"{count} {unit}"
    raise AssertionError("seconds match")


def relative(at: datetime, now: datetime) -> str:
    """``3 min 20 s ago``, ``now``, ``in 5 h``."""
    seconds = (now - at).total_seconds()
    if seconds < 1 and seconds > -1:
        return "now"
    return f"{span(seconds)} ago" if seconds > 0 else f"in {span(-seconds)}"


def moment(text: str) -> datetime | None:
    """A time of ``model/views``; None for what is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def when(text: str, now: datetime, *, none: str = "–") -> Html | str:
    """A time relative to now that a browser keeps up to date; the exact one is its title."""
    at = moment(text)
    if at is None:
        return none
    return tag("time", relative(at, now), datetime=_stamp(at), title=exact(at), data_as="ago")


def lasting(start: str, end: str, now: datetime) -> Html | str:
    """How long something took, or has taken until now."""
    begun, ended = moment(start), moment(end)
    if begun is None:
        return "–"
    if ended is None:
        return tag(
            "time", span((now - begun).total_seconds()), datetime=_stamp(begun), title=exact(begun), data_as="for"
        )
    title = f"{exact(begun)} – {exact(ended)}"
    return tag("span", span((ended - begun).total_seconds()), title=title)


def exact(at: datetime) -> str:
    """``2026-11-21 20:29:10 UTC``."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
