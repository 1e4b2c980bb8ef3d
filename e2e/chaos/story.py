"""A history as lives of sources and mirrors, which the rules of ``judging`` look at. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from e2e.chaos.history import Complaint, Fault, Json, Opening, Phase, Record, Request, Restored, Version
from e2e.chaos.kinds import KINDS, MirroredKind, condition
from mirror.model import names

MANAGEMENT = "management"
Owner = tuple[str, str]
"""The plural and the uid of a source: a copy is of the kind of its source."""
LATE_SECONDS = 2.0
"""By how much one cluster's news may be later than another's: all clusters are watched by one busy process."""

BACK_SECONDS = 60.0
"""After a cluster was restored, until all that is back from the dead has been seen."""


@dataclass(slots=True)
class Life:
    """One object, from its first version to its last; ``gone_at`` is None while it exists."""

    cluster: str
    kind: MirroredKind
    key: str
    uid: str
    versions: list[Version] = field(default_factory=list)
    gone_at: float | None = None

    @property
    def born_at(self) -> float:
        """When it was first seen."""
        return self.versions[0].at

    @property
    def bodies(self) -> Iterator[tuple[float, Json]]:
        """Each version's time and content."""
        return ((one.at, one.body) for one in self.versions if one.body is not None)

    def __str__(self) -> str:
        return f"{self.kind.name} {self.key}"

    @property
    def owner(self) -> Owner:
        """What a copy names as its source if this is one."""
        return self.kind.name, self.uid

    @property
    def last(self) -> Json:
        """Its last content."""
        return self.versions[-1].body or {}

    def exists_at(self, at: float) -> bool:
        """Whether it was there, as far as watches tell."""
        return self.born_at <= at and (self.gone_at is None or at < self.gone_at)

    def content_at(self, at: float) -> Json:
        """Its content then; ``{}`` before its birth, the last one after its end."""
        found: Json = {}
        for when, body in self.bodies:
            if when > at:
                break
            found = body
        return found


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
    management: list[Version] = field(default_factory=list)
    """What was written there, Secrets, too, in the order of etcd, which is exact."""
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    restored: list[Restored] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)

    def known_by(self, cluster: str, at: float) -> float:
        """When the history must have what was stored in a cluster at a time: an etcd that is frozen tells later."""
        late = at + LATE_SECONDS
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
        return [(since, until) for name, since, until in self._broken(cluster) if "etcd" in name]

    def was_restored(self, copy: Life, *, by: float) -> bool:
        """Whether the cluster of a copy had lost data by then that this copy, or its end, may have been among."""
        return any(
            one.cluster == copy.cluster and one.at <= by + LATE_SECONDS and copy.born_at <= one.at + BACK_SECONDS
            for one in self.restored
        )

    def had_fault(self, cluster: str, since: float, until: float) -> bool:
        """Whether something of this cluster was broken at some time in between."""
        return any(began <= until and ended >= since for _, began, ended in self._broken(cluster))

    def _broken(self, cluster: str) -> list[tuple[str, float, float]]:
        """Each fault of a cluster, from when until when."""
        began: dict[str, float] = {}
        found: list[tuple[str, float, float]] = []
        for one in self.faults:
            if one.target == cluster and not one.is_over:
                began[one.name] = one.at
            elif one.target == cluster:
                found.append((one.name, began.pop(one.name, one.at), one.at))
        return sorted([*found, *((name, at, float("inf")) for name, at in began.items())], key=lambda one: one[1])


def tell(records: Iterable[Record]) -> Story:
    """The story of a history, whose first record is its opening."""
    listed = list(records)
    assert isinstance(listed[0], Opening)
    story, lives = Story(listed[0]), _Lives()
    for record in listed:
        match record:
            case Version():
                if record.resource in KINDS:
                    lives.add(record)
                if record.cluster == MANAGEMENT:
                    story.management.append(record)
            case Request():
                story.requests.append(record)
            case Fault():
                story.faults.append(record)
            case Restored():
                story.restored.append(record)
            case Complaint():
                story.complaints.append(record)
            case Phase():
                story.phases[record.name] = record.at
            case Opening():
                pass
    story.management.sort(key=lambda one: one.revision)
    for life in lives.ended:
        _sort_in(story, life)
    return story


class _Lives:
    def __init__(self) -> None:
        self.ended: list[Life] = []
        """All, and those that go on among them."""
        self._now: dict[tuple[str, str, str], Life] = {}

    def add(self, version: Version) -> None:
        place = (version.cluster, version.resource, version.key)
        life = self._now.get(place)
        uid = "" if version.body is None else str(version.body["metadata"]["uid"])
        if life is not None and life.uid != uid:
            life.gone_at = version.at
            del self._now[place]
            life = None
        if version.body is None:
            return
        if life is None:
            life = self._now[place] = Life(version.cluster, KINDS[version.resource], version.key, uid)
            self.ended.append(life)
        life.versions.append(version)


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
            story.mirrors[life.kind.name, labels[names.SOURCE_UID]].append(life)
            return
    story.foreign.append(life)


# -- what a source of any kind says ------------------------------------------------------------------------------------


def placed_on(body: Json) -> str:
    """The worker that is recorded on a source."""
    found = condition(body, names.PLACED)
    return str(found.get("message", "")) if found else ""


def annotation(body: Json, name: str) -> str:
    """One of its annotations, or nothing."""
    return str((body.get("metadata", {}).get("annotations") or {}).get(name, ""))
