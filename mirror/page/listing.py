"""The list: what deserves a look, workers, the last hours, one page of Jobs.

Pure: what is known goes in, parts of a page come out. ``strip``, ``fleet`` and ``chart`` draw what is above the Jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from markupsafe import Markup

from mirror.model.views import UNKNOWN, JobView, WorkerView
from mirror.page import chart, fleet, strip
from mirror.page.activity import Bar
from mirror.page.badges import badge, identifier, is_default, job_path, kind_chip, late, number, pods, progress
from mirror.page.health import STATES, unreachable
from mirror.page.markup import join, tag
from mirror.page.query import NOWHERE, Query
from mirror.page.table import PAGE_JOBS, Selection, Triage
from mirror.page.times import lasting, when
from mirror.page.view import Fragment, View

MOST_NAMESPACES = 100
"""Suggested in the filter."""
COLUMNS = (
    ("job", "name", "Job"), ("is", "state", "State"), ("worker", "worker", "Worker"), ("pods", "pods", "Completions"),
    ("created", "created", "Created"), ("took", "took", "Duration"), ("why", "why", "Why"),
)  # fmt: skip
"""Class, what it is sorted by, title."""
_ROLES = {
    (False, True): ("leader", "good", "This manager places and mirrors Jobs"),
    (False, False): ("standby", "muted", "Another manager is the leader; this one only watches"),
    (True, True): ("assigns", "good", "This manager assigns workers; like others it mirrors Jobs on its own workers"),
    (True, False): ("active", "good", "This manager mirrors Jobs on its own workers; another one assigns workers"),
}
"""Whether several work at once, and whether this one leads: text, tone, title."""


class ListState(msgspec.Struct, frozen=True, kw_only=True):
    """What the list is made of."""

    is_leading: bool
    is_shared: bool = False
    """Whether several managers work at once."""
    workers: tuple[WorkerView, ...]
    selection: Selection
    namespaces: tuple[str, ...]
    lags: Mapping[str, float] = {}
    """By worker, in seconds, where a status is not stored yet."""
    triage: Triage | None = Triage()
    """None: nothing has been counted yet."""
    kinds: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()


def first_state(
    workers: tuple[WorkerView, ...], rows: tuple[JobView, ...], *, is_leading: bool, is_shared: bool = False
) -> ListState:
    """What can be shown before everything has been read: no counts, no chart."""
    selection = Selection(rows=rows, counts={}, found=-1, page=1, pages=1)
    return ListState(
        is_leading=is_leading, is_shared=is_shared, workers=workers, selection=selection, namespaces=(), triage=None
    )


def view(seen: ListState, query: Query, now: datetime) -> View:
    """The whole list."""
    workers, hidden = fleet.shown_workers(seen.workers)
    selection = seen.selection
    names = tuple(worker.name for worker in workers)
    found = (selection.found, selection.page, len(selection.rows), query)
    empty = (not selection.rows, query.is_everything)
    return View(
        parts=(
            role(seen.is_leading, is_shared=seen.is_shared),
            strip.strip(seen.triage, query),
            fleet.summary(seen.workers, hidden),
            chart.activity(seen.bars),
            Fragment("states", (selection.counts, query), lambda: _states(selection, query)),
            Fragment("chosen", (query, query.problem), lambda: _chosen(query)),
            Fragment("columns", query, lambda: _columns(query)),
            Fragment("found", found, lambda: _found(selection, query)),
            Fragment("nothing", empty, lambda: _nothing(*empty)),
            Fragment("worker", (names, query.worker), lambda: _choice("worker", _places(names), query.worker)),
            Fragment("kind", (seen.kinds, query.kind), lambda: _choice("kind", _kinds(seen.kinds), query.kind)),
            Fragment("namespaces", seen.namespaces, lambda: _namespaces(seen.namespaces)),
        ),
        lists={
            "fleet": fleet.lines(workers, seen.lags, query.worker, now),
            "rows": tuple(_row_part(job, now) for job in selection.rows),
        },
    )


def role(is_leading: bool, *, is_shared: bool = False) -> Fragment:
    """What this manager does: of several that work at once, whether it assigns workers."""
    text, tone, title = _ROLES[is_shared, is_leading]
    tones = f"badge tone-{tone}"
    return Fragment("role", (is_leading, is_shared), lambda: tag("span", text, id="role", class_=tones, title=title))


# -- what to look at ---------------------------------------------------------------------------------------------------


def _states(selection: Selection, query: Query) -> Markup:
    """Jobs by state, each a way to see only these."""
    is_counted = selection.found >= 0
    total = sum(selection.counts.values())
    choices = [("", "All", total), *((state, state, selection.counts.get(state, 0)) for state in STATES)]
    items = [
        tag(
            "li",
            tag(
                "a",
                tag("span", label, class_="label"),
                tag("span", number(count) if is_counted else "…", class_="count"),
                href=_address(query.with_state(state)),
                class_=f"state {label.lower()}{'' if count else ' none'}",
                aria_current="true" if query.state == state else None,
                data_live=True,
            ),
        )
        for state, label, count in choices
    ]
    return tag("ul", items, id="states", class_="states")


def _chosen(query: Query) -> Markup:
    """What the list is narrowed to that no field shows, each a way to drop it; and what cannot be read."""
    only = {"late": "status late", "stuck": "not progressing"}
    chips = [
        tag(
            "a",
            text,
            tag("span", " ×", aria_hidden="true"),
            href=_address(msgspec.structs.replace(query, **{name: "", "page": 1})),
            class_="chip drop",
            aria_label=f"Remove the filter {text}",
            data_live=True,
        )
        for name, text in (("reason", f"reason: {query.reason}"), ("only", only.get(query.only, "")))
        if getattr(query, name)
    ]
    problem = tag("span", f"label: {query.problem}", class_="bad", role="alert") if query.problem else None
    return tag("div", *chips, problem, id="chosen", class_="chosen")


def _columns(query: Query) -> Markup:
    """Titles, each a way to sort by it."""
    column, is_falling = query.sort.removeprefix("-") or "created", query.sort.startswith("-") or not query.sort
    heads = []
    for kind, name, label in COLUMNS:
        order = None if column != name else "descending" if is_falling else "ascending"
        wanted = query.sorted_by(name)
        if name == "created" and not query.sort:
            wanted = msgspec.structs.replace(wanted, sort="created")
        link = tag("a", label, href=_address(wanted), data_live=True)
        heads.append(tag("th", link, scope="col", role="columnheader", class_=kind, aria_sort=order))
    return tag("tr", heads, id="columns", role="row")


def _address(query: Query) -> str:
    return f"?{query.address()}" if query.address() else "."


def _places(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [("", "any worker"), (NOWHERE, "none yet"), *((name, name) for name in names)]


def _kinds(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [("", "any kind"), *((name, name) for name in names)]


def _choice(name: str, choices: list[tuple[str, str]], chosen: str) -> Markup:
    """A field with all that can be chosen, and what was chosen though it is not there."""
    if chosen not in {value for value, _ in choices}:
        choices.append((chosen, chosen))
    options = [tag("option", label, value=value, selected=value == chosen) for value, label in choices]
    return tag("select", options, id=name, name=name)


def _namespaces(names: Sequence[str]) -> Markup:
    return tag("datalist", [tag("option", value=name) for name in names], id="namespaces")


# -- Jobs --------------------------------------------------------------------------------------------------------------


def _found(selection: Selection, query: Query) -> Markup:
    """Which part of the list this is, and the ways to the others."""
    first = (selection.page - 1) * PAGE_JOBS
    text = f"{number(first + 1)}–{number(first + len(selection.rows))} of {number(selection.found)}"
    if selection.found < 0:
        text = f"the newest {len(selection.rows)}"
    return tag(
        "nav",
        _turn("Newer", "prev", query.with_page(selection.page - 1) if selection.page > 1 else None),
        tag("span", text if selection.rows else "0 Jobs"),
        _turn("Older", "next", query.with_page(selection.page + 1) if selection.page < selection.pages else None),
        id="found",
        class_="pager",
        aria_label="Pages",
    )


def _turn(label: str, rel: str, query: Query | None) -> Markup:
    if query is None:
        return tag("span", label, class_="turn off", aria_hidden="true")
    return tag("a", label, href=_address(query), rel=rel, class_="turn", data_live=True)


def _nothing(is_empty: bool, is_unfiltered: bool) -> Markup:
    if not is_empty:
        return tag("p", id="nothing", hidden=True)
    if is_unfiltered:
        return tag("p", "No mirrored Jobs.", id="nothing", class_="nothing")
    return tag("p", "No Jobs match the filter. ", tag("a", "Show all", href="."), id="nothing", class_="nothing")


def _row_part(job: JobView, now: datetime) -> Fragment:
    name = identifier("j", *(() if is_default(job.kind) else (job.kind,)), job.namespace, job.name)
    return Fragment(name, job, lambda: _row(name, job, now))


def _row(element: str, job: JobView, now: datetime) -> Markup:
    link = tag(
        "a",
        tag("span", job.namespace, "/", class_="namespace"),
        tag("span", job.name, class_="name"),
        href=job_path(job),
        title=f"{job.namespace}/{job.name}",
    )
    return tag(
        "tr",
        tag("th", link, kind_chip(job.kind), scope="row", role="rowheader", class_="job"),
        _cell("is", badge(job.state)),
        _cell("worker", job.worker or "–"),
        _cell("pods", progress(job), pods(job)),
        _cell("created", when(job.created, now)),
        _cell("took", lasting(job.started, job.finished, now)),
        _cell("why", late(job), why(job, now)),
        class_=_mark(job),
        id=element,
        role="row",
    )


def _mark(job: JobView) -> str | None:
    """What deserves a look, so that it is found among many."""
    if job.state == "Failed":
        return "failed"
    return "stuck" if not job.is_finished and (job.obstructed_at or job.state == UNKNOWN) else None


def why(job: JobView, now: datetime) -> Markup:
    """Why it is as it is, and since when where it should not last."""
    since = "" if job.is_finished else job.obstructed_at
    lasts = join(" for ", lasting(since, "", now)) if since else None
    if job.state == UNKNOWN:
        who = unreachable(job)
        return tag("span", who, lasts, job.why.removeprefix(who) or None, title=job.why)
    return tag("span", job.why, lasts, title=job.why)


def _cell(kind: str, *children: str | None) -> Markup:
    return tag("td", *children, class_=kind, role="cell")
