"""One Job: its state, its timeline, what it waits for. Pure, like ``listing``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from zlib import crc32

import msgspec
from markupsafe import Markup

from mirror.model.keys import SourceKey
from mirror.model.views import JobView, Moment
from mirror.page import listing
from mirror.page.badges import badge, chip, identifier, kind_chip, late, pods, progress
from mirror.page.markup import join, tag
from mirror.page.times import lasting, offset, when
from mirror.page.view import Fragment, View

MOST_MOMENTS = 200
"""Of a timeline, the latest ones."""
MOST_OBSTACLES = 100
"""Workers that are listed with why they are not eligible."""

_KINDS = {"Error": "bad", "Lost": "bad", "Refused": "bad", "Waiting": "wait", "Held": "wait", "Deleting": "wait"}
"""How an entry looks; all others are plain, but for the end."""


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """What the page is made of."""

    is_leading: bool
    is_shared: bool = False
    key: SourceKey
    job: JobView | None
    """None: there is none of this name."""
    timeline: tuple[Moment, ...] = ()
    obstacles: Mapping[str, str] = {}
    elsewhere: str = ""
    """What only another manager knows of it; empty: nothing."""


def view(seen: JobState, now: datetime) -> View:
    """The whole page."""
    job = seen.job
    moments = seen.timeline[-MOST_MOMENTS:]
    obstacles = sorted(seen.obstacles.items())[:MOST_OBSTACLES]
    is_waiting = job is not None and job.state == "Waiting"
    is_pending, elsewhere = is_waiting and not obstacles, seen.elsewhere
    return View(
        parts=(
            listing.role(seen.is_leading, is_shared=seen.is_shared),
            Fragment("head", (seen.key, job), lambda: _head(seen.key, job, now)),
            Fragment("facts", job, lambda: _facts(job, now)),
            Fragment("no-events", not moments, lambda: _note("no-events", "No events recorded.", shown=not moments)),
            Fragment("elsewhere", elsewhere, lambda: _note("elsewhere", elsewhere, shown=bool(elsewhere))),
            Fragment("why-not", is_waiting, lambda: tag("h2", "Why not placed", id="why-not", hidden=not is_waiting)),
            Fragment("pending", is_pending, lambda: _note("pending", "Not evaluated yet.", shown=is_pending)),
        ),
        lists={"timeline": _moments(moments, now), "obstacles": tuple(_obstacle(*pair) for pair in obstacles)},
    )


def _head(key: SourceKey, job: JobView | None, now: datetime) -> Markup:
    place, name = tag("span", key.namespace, "/", class_="namespace"), tag("span", key.name, class_="name")
    title = tag("h1", place, name)
    if job is None:
        gone = tag("p", f"{key.kind} not found; it may have been deleted.", class_="because")
        return tag("div", tag("div", title, class_="title"), gone, id="head", class_="head")
    where = tag("span", "on ", tag("strong", job.worker), class_="place") if job.worker else None
    return tag(
        "div",
        tag("div", title, kind_chip(job.kind), badge(job.state), where, late(job), class_="title"),
        tag("p", listing.why(job, now), class_="because") if job.because else None,
        id="head",
        class_="head",
    )


def _facts(job: JobView | None, now: datetime) -> Markup:
    if job is None:
        return tag("dl", id="facts", class_="facts")
    bar = None
    if job.completions:
        done = f"{job.succeeded} of {job.completions} pods have succeeded"
        bar = progress(job, label=done)
    pairs = (
        ("Pods", join(pods(job), bar)),
        ("Created", when(job.created, now)),
        ("Started", when(job.started, now, none="not yet")),
        ("Finished", when(job.finished, now, none="not yet")),
        ("Duration", lasting(job.started, job.finished, now)),
        ("UID", tag("code", job.uid)),
        ("Labels", join(*(chip(f"{name}={text}", kind="label") for name, text in sorted(job.labels.items())[:20]))),
    )
    return tag(
        "dl",
        [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs if value],
        id="facts",
        class_="facts",
    )


def _moments(moments: Sequence[Moment], now: datetime) -> tuple[Fragment, ...]:
    """Entries keep their id when older ones go: it is made of what they say."""
    seen: Counter[int] = Counter()
    parts, first = [], moments[0].at if moments else ""
    for one in moments:
        digest = crc32(repr(one).encode("utf-8", "backslashreplace"))
        seen[digest] += 1
        name = f"m:{digest:08x}-{seen[digest]}"
        parts.append(Fragment(name, (one, first), partial(_moment, name, one, first, now)))
    return tuple(parts)


def _moment(element: str, one: Moment, first: str, now: datetime) -> Markup:
    kind = _KINDS.get(one.kind, "")
    if one.kind == "Finished":
        kind = "bad" if one.text.startswith("Failed") else "good"
    place = f"{' · ' if one.text else ''}{one.worker}" if one.worker else ""
    return tag(
        "li",
        tag("span", when(one.at, now), class_="at"),
        tag("span", offset(first, one.at), class_="offset", title="After the first entry"),
        tag("span", one.kind, class_="kind"),
        tag("span", one.text, tag("span", place, class_="muted") if place else None, class_="text"),
        id=element,
        class_=f"moment {kind}".strip(),
    )


def _obstacle(worker: str, why: str) -> Fragment:
    name = identifier("l", worker)
    return Fragment(name, why, lambda: tag("div", tag("dt", worker or "the Job itself"), tag("dd", why), id=name))


def _note(name: str, text: str, *, shown: bool) -> Markup:
    return tag("p", text, id=name, class_="nothing", hidden=not shown)
