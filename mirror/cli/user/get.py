"""``mirror get``: where Jobs are, how they are, and for how long. The right to list them is enough.

All kinds of the table are listed. As long as only Jobs are shown nothing says so; else names are those of ``kubectl get
all``, with kind and group.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import click
import msgspec

from mirror.batch.label_selectors import MalformedSelector, Requirement, matches, parse
from mirror.cli.user import printing
from mirror.cli.user.cluster import Cluster, management
from mirror.cli.user.failures import Failure, KindNotServed, NotAllowed, OutOfReach
from mirror.cli.user.naming import Chosen, chosen, kinds
from mirror.cli.user.options import Where
from mirror.cli.user.printing import Column, Format
from mirror.cli.user.running import progress
from mirror.cli.user.server import manager
from mirror.cli.user.similar import hint
from mirror.cli.user.sources import is_source, view_of, view_of_source
from mirror.cli.user.terminal import display
from mirror.kinds.base import Kind
from mirror.kinds.registry import object_name, resource_name
from mirror.kube.objects import Object
from mirror.model.reasons import Reason
from mirror.model.text import nearest
from mirror.model.views import STATES, JobView

LAG_SECONDS = 2.0
"""How long the manager is waited for once all is listed."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which of the Jobs are shown: all that are given must fit, of several values one."""

    labels: tuple[Requirement, ...] = ()
    workers: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    """In lower case."""
    reasons: frozenset[str] = frozenset()
    """In lower case."""

    @property
    def selector(self) -> str:
        """The labels as a server takes them."""
        return ",".join(map(str, self.labels))

    def fits(self, job: Object, view: JobView) -> bool:
        """Whether a Job is shown."""
        return (
            (not self.labels or matches(self.labels, job.labels))
            and (not self.workers or view.worker in self.workers)
            and (not self.states or view.state.lower() in self.states)
            and (not self.reasons or _reason(view).lower() in self.reasons)
        )


EVERY_JOB = Filters()


def filters(labels: str, workers: Iterable[str], states: Iterable[str], reasons: Iterable[str]) -> Filters:
    """Read the options.

    Raises:
        UsageError: the label selector is malformed, or a Job never is in such a state.
    """
    try:
        requirements = parse(labels)
    except MalformedSelector as error:
        raise click.UsageError(f"--selector {labels!r}: {error}") from None
    states = tuple(states)
    for state in states:
        _check_state(state)
    lower = (frozenset(map(str.lower, values)) for values in (states, reasons))
    return Filters(requirements, frozenset(workers), *lower)


def _check_state(state: str) -> None:
    """Whether there is such a state; a kind beside Job may have final conditions of its own."""
    if state.lower() in map(str.lower, STATES) or list(kinds()) != [kinds().default]:
        return
    meant = nearest(state.capitalize(), STATES)
    hint = f" Did you mean '{meant}'?" if meant else ""
    raise click.UsageError(f"--state {state!r}: expected one of {', '.join(STATES)}.{hint}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be listed, and how."""

    chosen: Chosen = field(default_factory=lambda: chosen((), ()))
    everywhere: bool = False
    form: Format = "table"
    filters: Filters = EVERY_JOB
    sorted_by: str = ""
    """One of ``options.SORTED_BY``; empty: as is usual."""

    def views(self, kind: Kind, jobs: Iterable[Object]) -> list[JobView]:
        """Those of these objects that are shown."""
        view = view_of if self.chosen.names else view_of_source
        seen = ((job, view(kind, job)) for job in jobs if self.wants(kind, job))
        return [shown for job, shown in seen if self.filters.fits(job, shown)]

    def wants(self, kind: Kind, job: Object) -> bool:
        """A Job by its name if there are names, and else every source."""
        return self.chosen.is_named(kind, job) if self.chosen.names else is_source(kind, job)


async def get(where: Where, wanted: Wanted) -> None:
    """Print Jobs and their workers once.

    Raises:
        Failure: they may not be listed, or one of the names is not there; what is there is printed before.
    """
    async with management(where) as cluster:
        with progress("Listing Jobs …"):
            async with Lags(where, cluster, wanted) as lags:
                seen = await lags.added_to(await _listed(cluster, wanted, lags.saw))
            if not seen and not wanted.everywhere:
                await cluster.check_namespace()
            missing = await _missing(cluster, seen, wanted)
    _print(seen, wanted, namespace=cluster.namespace)
    if lags.unreachable:
        printing.remark(f"Note: {lags.unreachable}. Statuses may be old, and LAG is not known.")
    if missing:
        raise Failure("; ".join(missing))


async def _listed(
    cluster: Cluster, wanted: Wanted, saw: Callable[[Kind, list[JobView]], None] = lambda *_: None
) -> list[JobView]:
    """What there is of each kind; ``saw`` is called with some after the other.

    A kind that the cluster does not serve has no objects there, and of one that may not be listed only that is said:
    both are failures where somebody asks for the kind, or nothing else can be listed.

    Raises:
        Failure: as said.
    """
    namespace = None if wanted.everywhere else cluster.namespace
    seen: list[JobView] = []
    left_out: list[Failure] = []
    for kind in wanted.chosen.kinds:
        fields, labels = wanted.chosen.field_selector(kind), wanted.filters.selector
        pages = cluster.object_pages(kind.resource, namespace=namespace, fields=fields, labels=labels)
        found: list[JobView] = []
        try:
            async for jobs, _ in pages:
                some = wanted.views(kind, jobs)
                saw(kind, some)
                found += some
        except (KindNotServed, NotAllowed) as failure:
            if wanted.chosen.are_asked_for:
                raise
            left_out.append(failure)
        else:
            seen += found
    if len(left_out) == len(wanted.chosen.kinds):
        raise left_out[0]
    for one in left_out:
        if isinstance(one, NotAllowed):
            printing.remark(one.message)
    return seen


async def _missing(cluster: Cluster, seen: Iterable[JobView], wanted: Wanted) -> list[str]:
    """What is to be said of names that are not there, kind by kind; of a single one, which was probably meant."""
    there = {(view.kind, view.name) for view in seen} if wanted.chosen.names else set()
    lost = [one for one in wanted.chosen.names if (one.kind.name, one.name) not in there]
    texts = []
    for kind in dict.fromkeys(one.kind for one in lost):
        names = [one.name for one in lost if one.kind is kind]
        meant = await hint(cluster, kind, names[0]) if len(names) == 1 else ""
        texts.append(f"{resource_name(kind)} {', '.join(names)} not found in namespace {cluster.namespace}{meant}")
    return texts


class Lags:
    """How far statuses are behind, which only the manager knows: never a reason to fail.

    It is asked about a kind once one of it is seen that is under way, while others are still listed.
    """

    def __init__(self, where: Where, cluster: Cluster, wanted: Wanted) -> None:
        self._where = where
        self._cluster = cluster
        self._namespace = None if wanted.everywhere else cluster.namespace
        self._kinds: set[str] = set()
        self._to_ask: asyncio.Queue[Kind | None] = asyncio.Queue()
        self._seconds: dict[str, float | None] = {}
        self._asking: asyncio.Task[None] | None = None
        self.unreachable = ""
        """Why the manager, which serves users, did not; empty: it did, serves none, or was not asked."""

    async def __aenter__(self) -> Lags:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def saw(self, kind: Kind, seen: Iterable[JobView]) -> None:
        """These are listed."""
        if kind.name in self._kinds or not any(view.worker and not view.is_finished for view in seen):
            return
        self._kinds.add(kind.name)
        self._to_ask.put_nowait(kind)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="ask the manager for lags")

    async def added_to(self, seen: list[JobView]) -> list[JobView]:
        """Add what it has answered, or does within ``LAG_SECONDS``."""
        if self._asking is None:
            return seen
        self._to_ask.put_nowait(None)
        done, _ = await asyncio.wait([self._asking], timeout=LAG_SECONDS)
        for task in done:
            task.result()
        late = {uid: seconds for uid, seconds in self._seconds.items() if seconds is not None}
        changed = msgspec.structs.replace
        return [changed(view, lag_seconds=late[view.uid]) if view.uid in late else view for view in seen]

    async def _ask(self) -> None:
        """About each kind, until there are no more."""
        with suppress(Failure):
            async with manager(self._where, self._cluster) as asked:
                while (kind := await self._to_ask.get()) is not None:
                    try:
                        told = await asked.jobs(kind, self._namespace)
                    except OutOfReach as failure:
                        self.unreachable = failure.message
                        return
                    except Failure:  # it may not mirror this one
                        continue
                    self._seconds |= {view.uid: view.lag_seconds for view in told}


def _print(seen: Sequence[JobView], wanted: Wanted, *, namespace: str) -> None:
    form, order = wanted.form, [kind.name for kind in kinds()]
    ordered = sorted(seen, key=lambda view: (order.index(view.kind), view.namespace, view.name))
    sort(ordered, wanted.sorted_by)
    if form in ("json", "yaml"):
        click.echo(printing.listing("MirroredJob", ordered, form))
    elif form == "name":
        printing.say(map(full_name, ordered))
    elif ordered:
        shown = columns(datetime.now(UTC), wanted, with_kinds=needs_kinds(ordered, wanted))
        wide = form == "wide"
        printing.say(printing.table(shown, ordered, wide=wide, on=display(abridged=not wide)))
        if sys.stdout.isatty():
            printing.remark(summary(ordered))
    elif not wanted.chosen.names:
        where = "" if wanted.everywhere else f" in namespace {namespace}"
        fitting = "" if wanted.filters == EVERY_JOB else " that match the filters"
        printing.remark(f"No mirrored Jobs{fitting} found{where}.{_reason_meant(wanted.filters)}")


def _reason_meant(shown: Filters) -> str:
    """A hint where a reason is not known: others than ours come from worker's controllers and from policies."""
    for reason in sorted(shown.reasons - {known.lower() for known in Reason}):
        if meant := nearest(reason, [known.lower() for known in Reason]):
            name = next(known.value for known in Reason if known.lower() == meant)
            return f" Did you mean --reason {name}?"
    return ""


def sort(seen: list[JobView], by: str) -> None:
    """Sort in place; equal ones stay in their order. The newest come first by age."""
    match by:
        case "age":
            seen.sort(key=lambda view: view.created, reverse=True)
        case "worker":
            seen.sort(key=lambda view: view.worker)
        case "state":
            seen.sort(key=lambda view: STATES.index(view.state) if view.state in STATES else len(STATES))
        case "reason":
            seen.sort(key=lambda view: (not _reason(view), _reason(view), view.because))


def _reason(view: JobView) -> str:
    """For machines; of what is over, the reason of its end. Texts for people are none."""
    return view.reason or (view.because if " " not in view.because else "")


def summary(seen: Sequence[JobView]) -> str:
    """How many there are in each state: ``3 Jobs: 1 Waiting, 2 Running``."""
    counts = Counter(view.state for view in seen)
    known = [*STATES, *sorted(counts.keys() - set(STATES))]
    listed = ", ".join(f"{counts[state]} {state}" for state in known if counts[state])
    return f"{len(seen)} {'Job' if len(seen) == 1 else 'Jobs'}: {listed}"


def full_name(view: JobView) -> str:
    """As ``kubectl get -o name`` has it: ``job.batch/train``."""
    return object_name(kinds()[view.kind], view.name)


def needs_kinds(seen: Iterable[JobView], wanted: Wanted) -> bool:
    """Whether names alone would not say what these are."""
    plain = wanted.chosen.plain.name
    return any(view.kind != plain for view in seen)


def columns(now: datetime, wanted: Wanted, *, with_kinds: bool = False, with_lag: bool = True) -> list[Column[JobView]]:
    """The table's columns.

    Args:
        now: what ages are relative to.
        wanted: what is listed; over all namespaces each row says its own.
        with_kinds: whether names say the kind, too.
        with_lag: whether the manager was asked how far statuses are behind.
    """

    def lag(view: JobView) -> str:
        return "" if view.lag_seconds is None else f"{view.lag_seconds:.1f}s"

    found = [Column[JobView]("NAMESPACE", lambda view: view.namespace, least=8)] if wanted.everywhere else []
    return [
        *found,
        Column("NAME", full_name if with_kinds else lambda view: view.name, least=8),
        Column("WORKER", lambda view: view.worker, least=6),
        Column("STATE", lambda view: view.state, is_state=True),
        Column("COMPLETIONS", done, rank=1),
        Column("DURATION", lambda view: printing.lasted(view.started, view.finished, now), rank=2),
        Column("AGE", lambda view: printing.lasted(view.created, "", now)),
        *([Column[JobView]("LAG", lag, rank=3)] if with_lag else []),
        Column("ACTIVE", lambda view: str(view.active), is_wide=True),
        Column("FAILED", lambda view: str(view.failed), is_wide=True),
        Column("UID", lambda view: view.uid, is_wide=True),
        Column("WHY", lambda view: why(view, now), least=8),
    ]


def why(view: JobView, now: datetime) -> str:
    """Why it waits or makes no progress; of pods that are not ready, for how long."""
    if view.reason != Reason.PODS_NOT_READY or not view.obstructed_at:
        return view.why
    return f"{view.because} for {printing.lasted(view.obstructed_at, '', now)}"


def done(view: JobView) -> str:
    """``2/5``; a work queue has no number of completions: ``2``. Another kind than Job may count nothing."""
    if view.completions is None and not view.succeeded and not kinds()[view.kind].counts_pods:
        return ""
    return str(view.succeeded) if view.completions is None else f"{view.succeeded}/{view.completions}"
