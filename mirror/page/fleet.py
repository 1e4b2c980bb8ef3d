"""Workers, a line each: how they are, how full, how late, until when their tokens last. Pure, for ``listing``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from markupsafe import Markup

from mirror.model.durations import human_duration
from mirror.model.views import WorkerView
from mirror.page.badges import badge, chip, identifier, number
from mirror.page.health import LATE_SECONDS
from mirror.page.markup import join, tag
from mirror.page.query import Query
from mirror.page.times import lasting, moment, when
from mirror.page.view import Fragment

MOST_SHOWN = 100
"""Workers shown; when there are more, those in trouble come first."""
MOST_LABELS = 12
"""Of one worker."""
TOKEN_SOON_SECONDS = 6 * 3600.0
"""A token that ends within this time should have been renewed."""
COLUMNS = (
    ("name", "Worker"),
    ("is", "State"),
    ("load", "Jobs"),
    ("lag", "Lag"),
    ("token", "Token"),
    ("about", "Labels"),
)


def shown_workers(workers: Sequence[WorkerView]) -> tuple[tuple[WorkerView, ...], int]:
    """The workers that get a line, and how many do not."""
    if len(workers) <= MOST_SHOWN:
        return tuple(workers), 0
    troubled_first = sorted(workers, key=lambda worker: (worker.state == "Connected", worker.name))
    return tuple(troubled_first[:MOST_SHOWN]), len(workers) - MOST_SHOWN


def token_level(worker: WorkerView, now: datetime) -> str:
    """``bad`` for a token that has ended, ``warn`` for one that soon will, empty else."""
    ends = moment(worker.token_expires)
    if ends is None:
        return ""
    left = (ends - now).total_seconds()
    return "bad" if left <= 0 else "warn" if left < TOKEN_SOON_SECONDS else ""


def summary(workers: Sequence[WorkerView], hidden: int) -> Fragment:
    """One line that is read aloud when it changes."""
    return Fragment("summary", (tuple(workers), hidden), lambda: _summary(workers, hidden))


def lines(workers: Iterable[WorkerView], lags: Mapping[str, float], chosen: str, now: datetime) -> tuple[Fragment, ...]:
    """A line each.

    Args:
        workers: in their order.
        lags: how late the latest status of a worker is, in seconds; no entry: not late.
        chosen: the worker that the list is narrowed to.
        now: what times are relative to.
    """
    found = []
    for worker in workers:
        name, level = identifier("w", worker.name), token_level(worker, now)
        lag = round(lags.get(worker.name, 0.0), 1)
        is_chosen = worker.name == chosen
        draw = partial(_line, name, worker, lag, is_chosen, now)
        found.append(Fragment(name, (worker, level, lag, is_chosen), draw))
    return tuple(found)


def _summary(workers: Sequence[WorkerView], hidden: int) -> Markup:
    up = sum(worker.state == "Connected" for worker in workers)
    lost = [worker.name for worker in workers if worker.state == "Lost"]
    text = f"{number(up)}/{number(len(workers))} workers ready" if workers else "No worker is registered."
    more = f"; lost: {', '.join(lost[:5])}{' …' if len(lost) > 5 else ''}" if lost else ""
    return tag("p", text + more, f"; {number(hidden)} not shown" if hidden else None, id="summary", class_="summary")


def _line(element: str, worker: WorkerView, lag: float, is_chosen: bool, now: datetime) -> Markup:
    link = tag(
        "a",
        worker.name,
        href=f"?{Query(worker=worker.name).address()}",
        title=f"Jobs on {worker.name}",
        aria_current="true" if is_chosen else None,
        data_live=True,
    )
    return tag(
        "tr",
        tag("th", link, class_="name", scope="row", role="rowheader"),
        _cell("is", badge(worker.state), _since(worker, now), _because(worker)),
        _cell("load", _load(worker)),
        _cell("lag", _lag(worker, lag)),
        _cell("token", _token(worker, now)),
        _cell("about", *_about(worker)),
        id=element,
        role="row",
        class_=f"worker-line {worker.state.lower() if worker.state in ('Lost', 'Connecting') else ''}".strip(),
    )


def _cell(kind: str, *children: Markup | str | None) -> Markup:
    return tag("td", *children, class_=kind, role="cell")


def _since(worker: WorkerView, now: datetime) -> Markup | None:
    since = worker.lost_since if worker.state == "Lost" and worker.lost_since else worker.since
    return tag("span", " for ", lasting(since, "", now), class_="muted since") if since else None


def _because(worker: WorkerView) -> Markup | None:
    return tag("span", worker.because, class_="because", title=worker.because) if worker.because else None


def _load(worker: WorkerView) -> Markup:
    """How many Jobs it has, and how full that makes it."""
    jobs = tag("strong", number(worker.jobs))
    if worker.capacity is None:
        return join(jobs, tag("span", " Job" if worker.jobs == 1 else " Jobs", class_="muted"))
    label = f"{worker.jobs} of at most {worker.capacity} Jobs"
    used, most = min(worker.jobs, worker.capacity), worker.capacity
    bar = tag("meter", label, value=used, max=most, high=most * 0.95, optimum=0, aria_label=label) if most > 0 else None
    return join(jobs, tag("span", f" of {number(worker.capacity)}", class_="muted"), bar)


def _lag(worker: WorkerView, lag: float) -> Markup | None:
    if worker.state == "Lost":
        return tag("span", "–", class_="muted")
    if worker.is_elsewhere:
        return tag("span", "–", class_="muted", title="Another manager follows this worker, and knows it")
    if lag < LATE_SECONDS:
        return tag("span", "in time", class_="muted", title="No status is late")
    return chip(human_duration(lag), kind="warn", title="So old is the oldest status that is not stored yet")


def _token(worker: WorkerView, now: datetime) -> Markup:
    if moment(worker.token_expires) is None:
        return tag("span", "–", class_="muted")
    level = token_level(worker, now)
    word = "expired " if level == "bad" else "expires "
    return tag("span", word, when(worker.token_expires, now), class_=f"chip {level or 'plain'}")


def _about(worker: WorkerView) -> list[Markup | None]:
    labels = sorted(worker.labels.items())
    return [
        chip("declared dead", kind="bad", title="Its Jobs start again on other workers") if worker.dead else None,
        chip("cordoned", kind="warn", title="No new Jobs are assigned") if worker.cordoned else None,
        chip("draining", kind="warn", title="No new Jobs; running Jobs finish") if worker.draining else None,
        *(chip(f"{key}={value}", kind="label") for key, value in labels[:MOST_LABELS]),
        chip(f"{len(labels) - MOST_LABELS} more", kind="plain") if len(labels) > MOST_LABELS else None,
        chip(f"weight {worker.weight:g}", kind="plain") if worker.weight != 1 else None,
        chip(worker.version, kind="plain", title="Version of Kubernetes") if worker.version else None,
    ]
