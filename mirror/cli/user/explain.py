"""``mirror explain``: a Job's story. From the management cluster alone, and fuller where the manager can be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import click
import msgspec

from mirror.cli.user import printing
from mirror.cli.user.cluster import Cluster, management
from mirror.cli.user.describing import fields_of, indented, section
from mirror.cli.user.failures import Failure
from mirror.cli.user.naming import Named, kinds
from mirror.cli.user.options import Where
from mirror.cli.user.pod_trouble import MOST_SHOWN, PodTrouble, troubles
from mirror.cli.user.printing import NONE, Column, Format
from mirror.cli.user.running import progress
from mirror.cli.user.server import KnownJob, NoManager, manager
from mirror.cli.user.sources import obstacles_of, view_of
from mirror.cli.user.terminal import PLAIN, Display, display
from mirror.cli.user.timeline import last_error, time_of_event, timeline
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.kube.resources import EVENTS
from mirror.model.text import clean
from mirror.model.views import JobView, Moment

Json = Mapping[str, object]

MOST_EVENTS = 200
"""The newest; whoever may create events may create any number of them."""


_WITHOUT_PODS = ("Suspended", "Deleting")


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is reported of a Job; also its form as JSON."""

    job: JobView
    timeline: tuple[Moment, ...]
    obstacles: Mapping[str, str] = msgspec.field(name="lacks", default={})
    """For each worker that is not eligible: why."""
    pods: tuple[PodTrouble, ...] = ()
    """Those that do not run, and why."""
    notes: tuple[str, ...] = ()
    """What is missing here, and why."""


async def explain(where: Where, wanted: Named, form: Format) -> None:
    """Print a Job's story.

    Raises:
        Failure: the Job is not there, or may not be read.
    """
    async with management(where) as cluster:
        with progress(f"Reading {wanted.name} …"):
            job = await cluster.object(wanted.kind.resource, wanted.name, namespace=cluster.namespace)
            events, why_no_events = await _events(cluster, wanted.kind, job)
            told, pods, remarks = await _told(where, cluster, wanted, has_pods=_has_pods(wanted.kind, job))
    notes = (*([why_no_events] if why_no_events else []), *remarks)
    story = msgspec.structs.replace(story_of(wanted.kind, job, events, told, notes), pods=pods)
    if form in ("json", "yaml"):
        click.echo(printing.listing("Explanation", [story], form))
    else:
        printing.say(lines_of(story, datetime.now(UTC), display()))


def story_of(kind: Kind, job: Object, events: list[Json], told: KnownJob | None, notes: tuple[str, ...] = ()) -> Story:
    """Put together what was found out; pure.

    Args:
        kind: of the source.
        job: the source.
        events: Kubernetes events about it.
        told: what the manager knows of it; None where it could not be asked.
        notes: what is missing, and why.
    """
    view = view_of(kind, job)
    notes = (*notes, *_uncounted(kind, view))
    if told is None:
        obstacles = obstacles_of(view.because) if not view.worker else {}
        return Story(job=view, timeline=timeline(kind, job, events), obstacles=obstacles, notes=notes)
    if told.unavailable:
        notes = (*notes, f"history and delays are not included: {told.unavailable}")
    merged_timeline = timeline(kind, job, events, told.timeline)
    return Story(job=merged(view, told.job), timeline=merged_timeline, obstacles=told.obstacles, notes=notes)


def merged(view: JobView, told: JobView | None) -> JobView:
    """The state from the Job, with what the manager knows better: why it is in it, and how far behind it is."""
    if told is None or told.uid != view.uid:
        return view
    because = told.because if told.state == view.state else ""
    return msgspec.structs.replace(view, because=because or view.because, lag_seconds=told.lag_seconds)


def _uncounted(kind: Kind, view: JobView) -> Iterator[str]:
    """Where pods that do not start would not show, since nothing counts those that are ready."""
    if kind.counts_ready or not view.worker or view.is_finished or view.reason or view.state in _WITHOUT_PODS:
        return
    see = f": see them with kubectl mirror pods {kind.resource.kind.lower()}/{view.name}" if kind.knows_pods else ""
    yield (
        f"{kind.name} does not count ready pods, so nothing is reported of pods that do not start{see}; "
        "an operator can have them watched (setting workers.watchPods)"
    )


async def _events(cluster: Cluster, kind: Kind, job: Object) -> tuple[list[Json], str]:
    """Events about this very Job, and why there are none to be had."""
    name, uid = job.metadata.name, job.metadata.uid
    selector = f"involvedObject.kind={kind.resource.kind},involvedObject.name={name},involvedObject.uid={uid}"
    try:
        found, _ = await cluster.items(EVENTS, namespace=cluster.namespace, fields=selector)
    except Failure as failure:
        return [], f"events are not included: {failure.message}"
    return sorted(found, key=time_of_event)[-MOST_EVENTS:], ""


def _has_pods(kind: Kind, job: Object) -> bool:
    """Whether its pods may show why it makes no progress, or why it failed."""
    view = view_of(kind, job)
    return bool(view.worker) and view.state != "Complete"


async def _told(
    where: Where, cluster: Cluster, wanted: Named, *, has_pods: bool
) -> tuple[KnownJob | None, tuple[PodTrouble, ...], list[str]]:
    """The manager's own knowledge, what is wrong with the pods, and what of it is not to be had, and why."""
    try:
        async with manager(where, cluster) as asked:
            told = await asked.job(cluster.namespace, wanted)
            pods, notes = await troubles(asked, cluster.namespace, wanted) if has_pods else ((), [])
            return told, pods, notes
    except NoManager as missing:
        if missing.is_forbidden:
            return None, (), [f"the manager's data is not included: {missing.message}"]
        # Where access is not enabled, all else is in the Job and its events.
        return None, (), [f"pods are not included: {missing.message}"] if has_pods else []
    except Failure as failure:
        return None, (), [f"the manager's data is not included: {failure.message}"]


def lines_of(story: Story, now: datetime, on: Display = PLAIN) -> Iterator[str]:
    """The story as ``kubectl describe`` would have it; every line is cleaned."""
    view, error = story.job, last_error(story.timeline)
    is_over = view.is_finished and view.state != "Deleting"
    reason = view.because if is_over else view.reason
    message = "Waiting because" if not view.worker and view.state != "Deleting" else "Message"
    done = "" if view.completions is None else f"{view.succeeded}/{view.completions}"
    lag = "" if view.lag_seconds is None else f"{view.lag_seconds:.1f}s"
    counted = ("Pods", f"{view.active} active, {view.succeeded} succeeded, {view.failed} failed")
    if not kinds()[view.kind].counts_pods:
        counted = ("Counted", counted[1] if view.active or view.succeeded or view.failed else "")
    yield from fields_of(
        (
            ("Name", view.name),
            ("Namespace", view.namespace),
            ("Kind", view.kind),
            ("UID", view.uid),
            ("State", view.state),
            ("Worker", view.worker or NONE),
            ("Reason", reason),
            (message, view.message if is_over else view.because),
            ("Created", _when(view.created, now)),
            ("Started", _when(view.started, now)),
            ("Finished", _when(view.finished, now)),
            ("Duration", printing.lasted(view.started, view.finished, now)),
            ("Completions", done),
            counted,
            ("Status lag", lag),
            ("Last error", f"{error.text} ({_ago(error.at, now)})" if error is not None else ""),
        ),
        on,
    )
    inner = indented(on)
    if story.obstacles and not view.is_finished:
        yield from section("Workers", printing.table(_OBSTACLES, sorted(story.obstacles.items()), on=inner))
    yield from section("Timeline", printing.table(_COLUMNS, story.timeline, on=inner) if story.timeline else ())
    if story.pods:
        left_out = len(story.pods) - MOST_SHOWN
        more = [f"… and {left_out} more"] if left_out > 0 else []
        yield from section("Unhealthy pods", [*printing.table(_PODS, story.pods[:MOST_SHOWN], on=inner), *more])
    if story.notes:
        yield from section("Notes", (clean(note, longest=1000) for note in story.notes))


def _when(at: str, now: datetime) -> str:
    return f"{at} ({_ago(at, now)})" if at else ""


def _ago(at: str, now: datetime) -> str:
    lasted = printing.lasted(at, "", now)
    return f"{lasted} ago" if lasted else "time unknown"


_COLUMNS = [
    Column[Moment]("TIME", lambda moment: moment.at),
    Column[Moment]("WHAT", lambda moment: moment.kind, is_state=True),
    Column[Moment]("WORKER", lambda moment: moment.worker, least=6),
    Column[Moment]("DETAILS", lambda moment: moment.text, least=20),
]
_PODS = [
    Column[PodTrouble]("POD", lambda one: one.pod or "(cannot be created)", least=12),
    Column[PodTrouble]("PROBLEM", lambda one: one.reason),
    Column[PodTrouble]("MESSAGE", lambda one: one.message, least=20),
]
_OBSTACLES = [
    Column[tuple[str, str]]("WORKER", lambda pair: pair[0], least=6),
    Column[tuple[str, str]]("NOT PLACED BECAUSE", lambda pair: pair[1], least=20),
]
