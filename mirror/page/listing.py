"""The list: workers, Jobs by state, one page of Jobs. Pure: what is known goes in, parts of a page come out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from markupsafe import Markup

from mirror.model.views import STATES, JobView, WorkerView
from mirror.page.badges import badge, chip, identifier, is_default, job_path, kind_chip, late, number, pods
from mirror.page.markup import join, tag
from mirror.page.query import NOWHERE, Query
from mirror.page.table import PAGE_JOBS, Selection
from mirror.page.times import lasting, moment, when
from mirror.page.view import Fragment, View

MOST_CARDS = 100
"""Workers shown; when there are more, those in trouble come first."""
MOST_NAMESPACES = 100
"""Suggested in the filter."""
TOKEN_SOON_SECONDS = 6 * 3600.0
"""A token that ends within this time should have been renewed."""


class ListState(msgspec.Struct, frozen=True, kw_only=True):
    """What the list is made of."""

    is_leading: bool
    workers: tuple[WorkerView, ...]
    selection: Selection
    namespaces: tuple[str, ...]


def view(seen: ListState, query: Query, now: datetime) -> View:
    """The whole list."""
    cards, hidden = shown_workers(seen.workers)
    selection = seen.selection
    names = tuple(worker.name for worker in cards)
    states = (selection.counts, query)
    found = (selection.found, selection.page, len(selection.rows), query)
    empty = (not selection.rows, query == Query())
    return View(
        parts=(
            role(seen.is_leading),
            Fragment("summary", (seen.workers, hidden), lambda: _summary(seen.workers, hidden)),
            Fragment("states", states, lambda: _states(selection, query)),
            Fragment("found", found, lambda: _found(selection, query)),
            Fragment("nothing", empty, lambda: _nothing(*empty)),
            Fragment("worker", (names, query.worker), lambda: _worker_choice(names, query.worker)),
            Fragment("namespaces", seen.namespaces, lambda: _namespaces(seen.namespaces)),
        ),
        lists={
            "cards": tuple(_card_part(worker, now) for worker in cards),
            "rows": tuple(_row_part(job, now) for job in selection.rows),
        },
    )


def role(is_leading: bool) -> Fragment:
    """Whether this manager acts."""
    text, kind, title = ("leader", "connected", "This manager places and mirrors Jobs")
    if not is_leading:
        text, kind, title = ("standby", "placed", "Another manager is the leader; this one only watches")
    return Fragment("role", is_leading, lambda: tag("span", text, id="role", class_=f"badge {kind}", title=title))


def shown_workers(workers: Sequence[WorkerView]) -> tuple[tuple[WorkerView, ...], int]:
    """The workers that get a card, and how many do not."""
    if len(workers) <= MOST_CARDS:
        return tuple(workers), 0
    troubled_first = sorted(workers, key=lambda worker: (worker.state == "Connected", worker.name))
    return tuple(troubled_first[:MOST_CARDS]), len(workers) - MOST_CARDS


def token_level(worker: WorkerView, now: datetime) -> str:
    """``bad`` for a token that has ended, ``warn`` for one that soon will, empty else."""
    ends = moment(worker.token_expires)
    if ends is None:
        return ""
    left = (ends - now).total_seconds()
    return "bad" if left <= 0 else "warn" if left < TOKEN_SOON_SECONDS else ""


# -- workers -----------------------------------------------------------------------------------------------------------


def _summary(workers: Sequence[WorkerView], hidden: int) -> Markup:
    """One line that is read aloud when it changes."""
    up = sum(worker.state == "Connected" for worker in workers)
    lost = [worker.name for worker in workers if worker.state == "Lost"]
    text = f"{number(up)}/{number(len(workers))} workers ready" if workers else "No worker is registered."
    more = f"; lost: {', '.join(lost[:5])}{' …' if len(lost) > 5 else ''}" if lost else ""
    return tag("p", text + more, f"; {number(hidden)} not shown" if hidden else None, id="summary", class_="summary")


def _card_part(worker: WorkerView, now: datetime) -> Fragment:
    name, level = identifier("w", worker.name), token_level(worker, now)
    return Fragment(name, (worker, level), lambda: _card(name, worker, level, now))


def _card(element: str, worker: WorkerView, level: str, now: datetime) -> Markup:
    since = worker.lost_since if worker.state == "Lost" and worker.lost_since else worker.since
    return tag(
        "li",
        tag("div", tag("h3", worker.name, title=worker.uid or None), badge(worker.state), class_="card-head"),
        tag("p", worker.because, class_="because", title=worker.because) if worker.because else None,
        tag("p", _load(worker), class_="load"),
        tag("p", *_facts(worker, level, since, now), class_="chips"),
        id=element,
        class_=f"card {worker.state.lower() if worker.state in ('Lost', 'Connecting') else ''}".strip(),
    )


def _load(worker: WorkerView) -> Markup:
    """How many Jobs it has, and how full that makes it."""
    jobs = tag("strong", number(worker.jobs))
    if worker.capacity is None:
        return join(jobs, " Job" if worker.jobs == 1 else " Jobs")
    label = f"{worker.jobs} of at most {worker.capacity} Jobs"
    used, most = min(worker.jobs, worker.capacity), worker.capacity
    bar = tag("meter", label, value=used, max=most, high=most * 0.95, optimum=0, aria_label=label) if most > 0 else None
    return join(jobs, f" of {number(worker.capacity)} Jobs", bar)


def _facts(worker: WorkerView, level: str, since: str, now: datetime) -> list[Markup | None]:
    token = moment(worker.token_expires)
    return [
        tag("span", f"{worker.state.lower()} for ", lasting(since, "", now), class_="chip plain") if since else None,
        chip(worker.version, kind="plain", title="Version of Kubernetes") if worker.version else None,
        chip(f"weight {worker.weight:g}", kind="plain") if worker.weight != 1 else None,
        chip("cordoned", kind="warn", title="No new Jobs are assigned") if worker.cordoned else None,
        chip("draining", kind="warn", title="No new Jobs; running Jobs finish") if worker.draining else None,
        tag("span", "token expires ", when(worker.token_expires, now), class_=f"chip {level or 'plain'}")
        if token and level != "bad"
        else None,
        tag("span", "token expired ", when(worker.token_expires, now), class_="chip bad") if level == "bad" else None,
    ]


# -- what to look at ---------------------------------------------------------------------------------------------------


def _states(selection: Selection, query: Query) -> Markup:
    """Jobs by state, each a way to see only these."""
    total = sum(selection.counts.values())
    choices = [("", "All", total), *((state, state, selection.counts.get(state, 0)) for state in STATES)]
    items = [
        tag(
            "li",
            tag(
                "a",
                tag("span", label, class_="label"),
                tag("span", number(count), class_="count"),
                href=_address(query.with_state(state)),
                class_=f"state {label.lower()}{'' if count else ' none'}",
                aria_current="true" if query.state == state else None,
                data_live=True,
            ),
        )
        for state, label, count in choices
    ]
    return tag("ul", items, id="states", class_="states")


def _address(query: Query) -> str:
    return f"?{query.address()}" if query.address() else "."


def _worker_choice(names: Sequence[str], chosen: str) -> Markup:
    """The filter's workers; one that is chosen stays, even when it is gone."""
    choices = [("", "any worker"), (NOWHERE, "no worker yet"), *((name, name) for name in names)]
    if chosen not in dict(choices):
        choices.append((chosen, chosen))
    options = [tag("option", label, value=value, selected=value == chosen) for value, label in choices]
    return tag("select", options, id="worker", name="worker")


def _namespaces(names: Sequence[str]) -> Markup:
    return tag("datalist", [tag("option", value=name) for name in names], id="namespaces")


# -- Jobs --------------------------------------------------------------------------------------------------------------


def _found(selection: Selection, query: Query) -> Markup:
    """Which part of the list this is, and the ways to the others."""
    first = (selection.page - 1) * PAGE_JOBS
    text = f"{number(first + 1)}–{number(first + len(selection.rows))} of {number(selection.found)}"
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
        _cell("pods", pods(job)),
        _cell("created", when(job.created, now)),
        _cell("took", lasting(job.started, job.finished, now)),
        _cell("why", late(job), tag("span", job.because, title=job.because) if job.because else None),
        id=element,
        role="row",
    )


def _cell(kind: str, *children: str | None) -> Markup:
    return tag("td", *children, class_=kind, role="cell")
