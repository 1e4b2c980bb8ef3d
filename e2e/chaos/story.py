"""A history as lives of sources and mirrors, which the rules of ``judging`` look at. Pure.

Not here: what sources and mirrors say of themselves (``reading``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from e2e.chaos.history import (
    BreachTold,
    ClockSet,
    Complaint,
    EraBegun,
    Fault,
    Json,
    Opening,
    Phase,
    Record,
    Request,
    Restored,
    Version,
)
from e2e.chaos.kinds import KINDS
from e2e.chaos.lives import PODS, Life, Lives, Owner, PodLife
from e2e.chaos.reading import annotation
from mirror.model import names

MANAGEMENT = "management"
LATE_SECONDS = 2.0
"""By how much one cluster's news may be later than another's: all clusters are watched by one busy process."""
ORDER_SECONDS = 0.25
"""The same where what comes first had been answered before the other was sent: campaigns have shown 0.05 s at most."""

BACK_SECONDS = 60.0
"""After a cluster was restored, until all that is back from the dead has been seen."""
RECOVERY_SECONDS = 10.0
"""After a fault, until managers have connected, and one of them leads."""
HOLD_UP, HOLD_UP_ALL = ("stall", "stall requests"), "freeze kube-apiserver"
"""What becomes of packets, and of who reads them, so that a request comes late that was sent in time."""
STOPPING_SECONDS = 5.0
"""At most, from when a restored etcd was stopped until its data were put back."""
STALE_SECONDS = 10.0
"""By how much what a manager acts upon may be older, whose watches hang: its lease is shorter."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A request of a manager that has deleted something on a worker."""

    asked: Request
    met: Sequence[Life]
    """What it was; several: one of these, since the history does not say which."""


@dataclass(slots=True)
class Story:
    """All that the rules ask for."""

    opening: Opening
    sources: dict[Owner, Life] = field(default_factory=dict)
    """Objects on the management cluster that name us."""
    unmanaged: list[Life] = field(default_factory=list)
    """Others there."""
    mirrors: defaultdict[Owner, list[Life]] = field(default_factory=lambda: defaultdict(list))
    """Objects on workers with our labels, by their source, in the order of their birth."""
    foreign: list[Life] = field(default_factory=list)
    """Objects on workers without."""
    pods: defaultdict[tuple[str, str], list[PodLife]] = field(default_factory=lambda: defaultdict(list))
    """Of a worker's Job, by the worker and the Job's uid."""
    deletions: list[Deletion] = field(default_factory=list)
    management: list[Version] = field(default_factory=list)
    """What was written there, Secrets, too, in the order of etcd, which is exact."""
    others: defaultdict[tuple[str, str], list[Version]] = field(default_factory=lambda: defaultdict(list))
    """What is written there that is of no kind: Secrets and Namespaces, by resource and name."""
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    clocks: defaultdict[str, list[ClockSet]] = field(default_factory=lambda: defaultdict(list))
    """By manager, in their order."""
    restored: list[Restored] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    breaches_told: set[tuple[str, str]] = field(default_factory=set)
    """Of which copies managers have logged that they run against a promise: the worker, the uid."""
    phases: dict[str, float] = field(default_factory=dict)
    eras: list[EraBegun] = field(default_factory=list)
    _broken: dict[str, list[tuple[str, float, float]]] = field(default_factory=dict)
    """What ``broken`` has found, by target."""

    @property
    def ends_at(self) -> float:
        """When the last version was seen on the management cluster."""
        return max((one.at for one in self.management), default=self.opening.at)

    def known_by(self, cluster: str, at: float, *, within: float = LATE_SECONDS) -> float:
        """When the history must have what was stored in a cluster at a time: an etcd that is frozen tells later."""
        late = at + within
        for began, ended in self._silences(cluster):
            if began <= late and ended >= at:
                late = max(late, ended + LATE_SECONDS)
        return late

    def stored_since(self, cluster: str, at: float) -> float:
        """When what the history has at a time may have been stored in a cluster."""
        early = at
        for began, ended in reversed(self._silences(cluster)):
            if began <= early <= ended + LATE_SECONDS:
                early = began - LATE_SECONDS
        return early

    def _silences(self, cluster: str) -> list[tuple[float, float]]:
        """When its etcd tells nothing: one that loses data does so since it is stopped for that, and not before."""
        found = [(since, until) for name, since, until in self.broken(cluster) if "etcd" in name]
        stops = [one.at - STOPPING_SECONDS for one in self.restored if one.cluster == cluster]
        return [(max((one for one in stops if since < one < until), default=since), until) for since, until in found]

    def said_by(self, resource: str, name: str, key: str, since: float, until: float) -> set[str]:
        """Each value that this annotation of an object of no kind had at some time in between; empty: it had none."""
        found, value = set[str](), ""
        for one in self.others.get((resource, name), ()):
            if one.at > since:
                found.add(value)
            if one.at > until:
                return found
            value = annotation(one.body or {}, key)
        return {*found, value}

    def policies_of(self, source: Life, body: Json, at: float) -> set[str]:
        """The policies that a source which says this may have had at a time (D14)."""
        if own := annotation(body, names.ON_WORKER_LOSS):
            return {own}
        namespace = source.key.partition("/")[0]
        said = self.said_by("namespaces", namespace, names.ON_WORKER_LOSS, at - STALE_SECONDS, at)
        return {one or self.opening.on_loss for one in said}

    def is_declared_dead(self, worker: str, at: float) -> bool:
        """Whether an operator has said so of a worker, as far as a manager may know it then."""
        return "true" in self.said_by("secrets", worker, names.GONE, at - STALE_SECONDS, at)

    def came_back(self, copy: Life) -> bool:
        """Whether a restored cluster has it again: its deletion is among what was lost."""
        return any(
            earlier.gone_at is not None and self.was_undone(copy.cluster, earlier.gone_at, copy.born_at)
            for earlier in self._lives_of(copy)
            if earlier is not copy
        )

    def may_have_missed(self, cluster: str, at: float) -> bool:
        """Whether a manager may know then what no watch has told of: a restore has undone it shortly before."""
        return any(
            one.cluster == cluster and one.at - LATE_SECONDS <= at <= one.at + STALE_SECONDS for one in self.restored
        )

    def was_revived(self, copy: Life, at: float) -> bool:
        """Whether it runs from this time on because a restored cluster does not know that it had stopped.

        One that was seen to have stopped since the restore does so no more.
        """
        lives = self._lives_of(copy)
        stops = [until for life in lives for _, until in life.runs() if until <= at]
        rests = [when for life in lives for when, body in life.bodies if not copy.kind.may_run(body) and when < at]
        return bool(stops) and any(
            not any(one.at + LATE_SECONDS < when for when in rests)
            for one in self._restores_between(copy.cluster, max(stops), at)
        )

    def _lives_of(self, copy: Life) -> list[Life]:
        """Of an object; several only where restored clusters have it again."""
        found = self.mirrors.get(copy.source, []) if copy.source is not None else []
        return [one for one in found if (one.cluster, one.uid) == (copy.cluster, copy.uid)]

    def was_undone(self, cluster: str, stored_at: float, seen_at: float) -> bool:
        """Whether a restore has undone what was stored at one time, so that the other is when this was seen."""
        return any(self._restores_between(cluster, stored_at, seen_at))

    def _restores_between(self, cluster: str, stored_at: float, seen_at: float) -> Iterator[Restored]:
        return (
            one
            for one in self.restored
            if one.cluster == cluster
            and one.snapshot_at <= stored_at <= one.at + LATE_SECONDS
            and one.at - LATE_SECONDS <= seen_at <= one.at + BACK_SECONDS
        )

    def ahead_between(self, manager: str, since: float, until: float) -> set[float]:
        """By how many seconds the clock of a manager was ahead of the clusters' at some time in between."""
        found, now = set[float](), 0.0
        for one in self.clocks.get(manager, ()):
            if one.at > since:
                found.add(now)
            if one.at > until:
                return found
            now = one.seconds
        return {*found, now}

    def had_fault(self, cluster: str, since: float, until: float, *, of: Sequence[str]) -> bool:
        """Whether one of these programs of a cluster was broken at some time in between."""
        return any(
            began <= until and ended >= since and any(program in name for program in of)
            for name, began, ended in self.broken(cluster)
        )

    def calm_seconds(self, worker: str, since: float, until: float) -> float:
        """For how long all was whole in between that managers need to act on a worker, and had been for a while."""
        targets = (worker, f"way to {worker}", MANAGEMENT, *self.clocks)
        broken = sorted((began, ended + RECOVERY_SECONDS) for one in targets for _, began, ended in self.broken(one))
        calm = 0.0
        for began, ended in broken:
            calm += max(0.0, min(began, until) - since)
            since = max(since, ended)
        return calm + max(0.0, until - since)

    def hold_ups(self, way: str, cluster: str) -> Iterator[tuple[float, float]]:
        """When something on the way to a cluster, or its API server, kept requests to themselves for a while."""
        yield from ((began, ended) for name, began, ended in self.broken(way) if name in HOLD_UP)
        yield from ((began, ended) for name, began, ended in self.broken(cluster) if name == HOLD_UP_ALL)

    def broken(self, target: str) -> list[tuple[str, float, float]]:
        """Each fault of a cluster, a manager or a way, from when until when."""
        if target not in self._broken:
            self._broken[target] = self._faults_of(target)
        return self._broken[target]

    def _faults_of(self, target: str) -> list[tuple[str, float, float]]:
        began: dict[str, float] = {}
        found: list[tuple[str, float, float]] = []
        for one in self.faults:
            if one.target == target and not one.is_over:
                began[one.name] = one.at
            elif one.target == target:
                found.append((one.name, began.pop(one.name, one.at), one.at))
        return sorted([*found, *((name, at, float("inf")) for name, at in began.items())], key=lambda one: one[1])


def tell(records: Iterable[Record]) -> Story:
    """The story of a history, whose first record is its opening."""
    listed = list(records)
    assert isinstance(listed[0], Opening)
    story, lives = Story(listed[0]), Lives(_begin_life)
    pods = Lives(lambda version, uid: PodLife(version.cluster, version.key, uid))
    for record in listed:
        match record:
            case Version():
                if record.resource in KINDS:
                    lives.add(record)
                elif record.resource == PODS:
                    pods.add(record)
                else:
                    story.others[record.resource, record.key.partition("/")[2]].append(record)
                if record.cluster == MANAGEMENT:
                    story.management.append(record)
            case Request():
                story.requests.append(record)
            case Fault():
                story.faults.append(record)
            case ClockSet():
                story.clocks[record.manager].append(record)
            case Restored():
                story.restored.append(record)
            case Complaint():
                story.complaints.append(record)
            case Phase():
                story.phases[record.name] = record.at
            case EraBegun():
                story.eras.append(record)
            case BreachTold():
                story.breaches_told.add((record.worker, record.uid))
            case Opening():
                pass
    story.management.sort(key=lambda one: one.revision)
    for life in lives.all:
        _sort_in(story, life)
    for pod in pods.all:
        story.pods[pod.copy].append(pod)
    _note_deletions(story, lives.all)
    return story


def _begin_life(version: Version, uid: str) -> Life:
    return Life(version.cluster, version.key, uid, kind=KINDS[version.resource])


def _sort_in(story: Story, life: Life) -> None:
    if life.cluster == MANAGEMENT:
        if any(life.kind.managed_by(body) == story.opening.managed_by for _, body in life.bodies):
            story.sources[life.owner] = life
        else:
            story.unmanaged.append(life)
        return
    for _, body in life.bodies:
        labels = body["metadata"].get("labels") or {}
        if labels.get(names.ORIGIN) == story.opening.origin and labels.get(names.SOURCE_UID):
            life.source = life.kind.name, labels[names.SOURCE_UID]
            story.mirrors[life.source].append(life)
            return
    story.foreign.append(life)


def _note_deletions(story: Story, lives: Iterable[Life]) -> None:
    """Which lives on workers the managers' deletions have met; one that failed may have been done all the same."""
    places: defaultdict[tuple[str, str, str], list[Life]] = defaultdict(list)
    for life in lives:
        places[life.cluster, life.kind.name, life.key].append(life)
    for asked in story.requests:
        if asked.verb != "delete" or asked.cluster == MANAGEMENT or asked.user not in story.opening.users:
            continue
        here = places[asked.cluster, asked.resource, asked.key]
        if (deleted := _first_to_go(story, asked, here)) is not None and _may_be_done(asked):
            deleted.is_deleted_by_manager = True
            story.deletions.append(Deletion(asked, (deleted,)))
        elif asked.code < HTTPStatus.BAD_REQUEST:
            story.deletions.append(Deletion(asked, [one for one in here if may_have_met(story, asked, one)]))


def _first_to_go(story: Story, asked: Request, lives: Sequence[Life]) -> Life | None:
    """Of lives of one name the one that went when this was requested; None: somebody else had deleted it before."""
    if any(one.went_at is not None and one.went_at < asked.received < (one.gone_at or 0.0) for one in lives):
        return None
    by = story.known_by(asked.cluster, asked.at)
    went = [one for one in lives if one.went_at is not None and asked.received <= one.went_at <= by]
    return min(went, key=lambda one: one.went_at or 0.0, default=None)


def _may_be_done(asked: Request) -> bool:
    return asked.code < HTTPStatus.BAD_REQUEST or asked.code >= HTTPStatus.INTERNAL_SERVER_ERROR


def may_have_met(story: Story, asked: Request, life: Life) -> bool:
    """Whether a life was there, as far as times tell, when a request for an object of its name came."""
    is_there = story.stored_since(life.cluster, life.born_at) - LATE_SECONDS <= asked.at
    is_not_gone = life.gone_at is None or life.gone_at + LATE_SECONDS >= asked.received
    is_named = (life.cluster, life.kind.name, life.key) == (asked.cluster, asked.resource, asked.key)
    return is_named and is_there and is_not_gone
