"""The picture of the last hours: plain SVG, a path for each state. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from markupsafe import Markup

from mirror.page.activity import BAR_SECONDS, BARS, GROUPS, Bar
from mirror.page.badges import number
from mirror.page.markup import join, tag
from mirror.page.view import Fragment

_WIDE, _HIGH, _GAP = 10, 100, 2
_LABELS = {"Waiting": "waiting", "Running": "running", "Unknown": "unknown", "Failed": "failed", "Complete": "complete"}
_STACK = tuple(reversed(GROUPS))
"""From the ground up: ends that went well, failures, then what goes on."""
_TIMES = 4
_OUTLINES = 24
"""Of one path: texts are bounded (``markup.LONGEST_TEXT``)."""


def activity(bars: Sequence[Bar]) -> Fragment:
    """The section's content."""
    return Fragment("activity", tuple(bars), lambda: _activity(bars))


def nice_top(most: int) -> int:
    """The end of the scale: 1, 2 or 5 times a power of ten, so that it seldom changes."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step >= max(most, 1):
                return factor * step
        step *= 10


def _activity(bars: Sequence[Bar]) -> Markup:
    if not bars:
        return tag("div", id="activity", class_="activity")
    top = nice_top(max(sum(bar.counts) for bar in bars))
    last = bars[-1]
    now = ", ".join(f"{number(many)} {_LABELS[name]}" for name, many in zip(GROUPS, last.counts, strict=True) if many)
    label = f"Jobs of the last {BARS * BAR_SECONDS // 3600} hours by state; the last five minutes: {now or 'none'}"
    picture = tag(
        "svg",
        *(tag("path", d=path, class_=f"area {name.lower()}") for name, path in _paths(bars, top) if path),
        *(_hover(index, bar) for index, bar in enumerate(bars) if sum(bar.counts)),
        viewBox=f"0 0 {len(bars) * _WIDE} {_HIGH}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )
    every = len(bars) // _TIMES
    times = [tag("span", _hour(bars[index * every].at), class_="tick") for index in range(_TIMES)]
    return tag(
        "div",
        tag("ul", *map(_key, GROUPS, last.counts), class_="legend"),
        tag(
            "div",
            tag("div", tag("span", number(top)), tag("span", "0"), class_="scale", aria_hidden="true"),
            picture,
            class_="plot",
        ),
        tag("div", *times, tag("span", "now", class_="tick"), class_="ticks", aria_hidden="true"),
        id="activity",
        class_="activity",
    )


def _paths(bars: Sequence[Bar], top: int) -> list[tuple[str, str]]:
    """For each state the outlines of its part of each bar, in as many paths as are needed."""
    found = []
    grounds = [0.0] * len(bars)
    for name in _STACK:
        place, outlines = GROUPS.index(name), []
        for index, bar in enumerate(bars):
            high = bar.counts[place] / top * _HIGH
            if high:
                bottom = _HIGH - grounds[index]
                outlines.append(f"M{index * _WIDE + _GAP / 2:g} {bottom:.1f}v{-high:.1f}h{_WIDE - _GAP}v{high:.1f}z")
                grounds[index] += high
        found += [(name, "".join(some)) for some in _batched(outlines, _OUTLINES)]
    return found


def _batched(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (texts[begin : begin + size] for begin in range(0, len(texts), size))


def _hover(index: int, bar: Bar) -> Markup:
    text = ", ".join(f"{number(many)} {_LABELS[name]}" for name, many in zip(GROUPS, bar.counts, strict=True) if many)
    return tag(
        "rect",
        tag("title", f"{_hour(bar.at)} UTC: {text}"),
        x=index * _WIDE,
        y=0,
        width=_WIDE,
        height=_HIGH,
        class_="hit",
    )


def _key(name: str, many: int) -> Markup:
    swatch = tag("span", class_=f"swatch {name.lower()}", aria_hidden="true")
    return tag("li", swatch, join(_LABELS[name], " ", tag("strong", number(many))))


def _hour(at: datetime) -> str:
    return at.strftime("%H:%M")
