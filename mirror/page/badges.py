"""Small pieces of both pages: states, counts, and what deserves a second look. Pure."""

from __future__ import annotations

from urllib.parse import quote

from markupsafe import Markup

from mirror.kinds import registry
from mirror.model.durations import human_duration
from mirror.model.text import clean
from mirror.model.tones import tone_of
from mirror.model.views import JobView
from mirror.page.health import STATES, is_late
from mirror.page.markup import LONGEST_TEXT, join, tag

_BAR = 100
"""How wide a progress bar is, in its own units."""


def badge(state: str) -> Markup:
    """A state as a word in a colour; the word alone says it. Which is good or bad, the table of the commands says."""
    kind = f" {state.lower()}" if state in STATES else ""
    return tag("span", state, class_=f"badge{kind} tone-{tone_of(state)}")


def chip(text: str, *, kind: str = "", title: str = "") -> Markup:
    """A small fact."""
    return tag("span", text, class_=f"chip {kind}".strip(), title=title or None)


def number(count: int) -> str:
    """``20,000``."""
    return f"{count:,}"


def pods(job: JobView) -> Markup:
    """How many pods have ended well, of how many, and what the others do."""
    wanted = "" if job.completions is None else f"/{number(job.completions)}"
    return join(
        tag("span", f"{number(job.succeeded)}{wanted}", class_="done"),
        tag("span", f" · {number(job.active)} active", class_="muted") if job.active else None,
        tag("span", f" · {number(job.failed)} failed", class_="bad") if job.failed else None,
    )


def progress(job: JobView, *, label: str = "") -> Markup | None:
    """A bar of the pods that ended well, run, and failed, of as many as are wanted."""
    wanted = max(job.completions or 0, job.succeeded + job.active)
    if not wanted or job.completions is None:
        return None
    parts, left = [], 0.0
    for kind, count in (("good", job.succeeded), ("going", job.active), ("bad", job.failed)):
        wide = min(count / wanted * _BAR, _BAR - left)
        if wide > 0:
            parts.append(tag("rect", x=f"{left:.1f}", y=0, width=f"{wide:.1f}", height=1, class_=kind))
            left += wide
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {_BAR} 1",
        preserveAspectRatio="none",
        role="img",
        aria_label=label or f"{job.succeeded} of {job.completions} completions",
        class_="progress",
    )


def late(job: JobView) -> Markup | None:
    """A status that is not stored here yet."""
    if job.lag_seconds is None or not is_late(job):
        return None
    text = f"status lag {human_duration(job.lag_seconds)}"
    return chip(text, kind="warn", title="The newest status on the worker is not stored on the management cluster yet")


def job_path(job: JobView) -> str:
    """Address of a Job's page, relative to the list's; the parts are DNS names, and quoted if they are not.

    A kind that is not the table's first is in it, so that two of one name have two pages.
    """
    path = f"jobs/{quote(job.namespace, safe='')}/{quote(job.name, safe='')}"
    return path if is_default(job.kind) else f"{path}?kind={quote(job.kind, safe='')}"


def default_kind() -> str:
    """The name of the kind that is meant where none is named: the table's first."""
    return registry.BUILT_IN.default.name


def is_default(kind: str) -> bool:
    """Whether a kind need not be named."""
    return kind == default_kind()


def kind_chip(kind: str) -> Markup | None:
    """Of which kind something is; nothing for the kind that is meant where none is named."""
    return None if is_default(kind) else chip(kind, kind="plain", title="Kind")


def identifier(kind: str, *parts: str) -> str:
    """An element's id, as it is in the page and in messages: without white space, cleaned as all text is."""
    return clean(f"{kind}:{'/'.join(parts)}".replace(" ", "_"), longest=LONGEST_TEXT)
