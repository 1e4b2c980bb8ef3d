"""Ages of the page, as kubectl prints them, with the exact time as title. Pure; the browser keeps them up to date."""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup

from mirror.model.durations import human_duration
from mirror.page.markup import tag


def relative(at: datetime, now: datetime) -> str:
    """``3m20s ago``, ``now``, ``in 5h``."""
    seconds = (now - at).total_seconds()
    if seconds < 1 and seconds > -1:
        return "now"
    return f"{human_duration(seconds)} ago" if seconds > 0 else f"in {human_duration(-seconds)}"


def moment(text: str) -> datetime | None:
    """A time of ``model/views``; None for what is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def when(text: str, now: datetime, *, none: str = "–") -> Markup | str:
    """A time relative to now that a browser keeps up to date; the exact one is its title."""
    at = moment(text)
    if at is None:
        return none
    return tag("time", relative(at, now), datetime=_stamp(at), title=exact(at), data_as="ago")


def lasting(start: str, end: str, now: datetime) -> Markup | str:
    """How long something took, or has taken until now."""
    begun, ended = moment(start), moment(end)
    if begun is None:
        return "–"
    if ended is None:
        return tag(
            "time",
            human_duration((now - begun).total_seconds()),
            datetime=_stamp(begun),
            title=exact(begun),
            data_as="for",
        )
    title = f"{exact(begun)} – {exact(ended)}"
    return tag("span", human_duration((ended - begun).total_seconds()), title=title)


def offset(first: str, at: str) -> str:
    """How long after the first entry: ``+350 ms``, ``+2.134 s``, ``+12m``; to the millisecond where that is known."""
    begun, then = moment(first), moment(at)
    if begun is None or then is None:
        return ""
    whole = round((then - begun).total_seconds() * 1000)
    if abs(whole) < 1000:
        return f"+{max(whole, 0)} ms"
    if whole >= 600_000 or whole < 0:
        return f"+{human_duration(max(whole, 0) / 1000)}"
    return f"+{whole / 1000:.3f} s" if "." in at or "." in first else f"+{whole // 1000} s"


def exact(at: datetime) -> str:
    """``2026-11-21 20:29:10 UTC``."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
