"""Lives of objects: the versions of each from its first to its last, and when it runs. Pure.

Used by ``story``. Not here: what became of what (``story``), and what an object says of itself (``reading``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from e2e.chaos.history import Json, Version
from e2e.chaos.kinds import MirroredKind
from e2e.chaos.reading import is_going

Owner = tuple[str, str]
"""The plural and the uid of a source: a copy is of the kind of its source."""
PODS = "pods"
COPY_UID = "batch.kubernetes.io/controller-uid"
"""The label of a pod with the uid of its Job; whoever is left behind by it keeps the label."""
_ENDED = ("Succeeded", "Failed")
_FOREVER = float("inf")


@dataclass(slots=True)
class ObjectLife:
    """One object, from its first version to its last; ``gone_at`` is None while it exists."""

    cluster: str
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

    @property
    def last(self) -> Json:
        """Its last content."""
        return self.versions[-1].body or {}

    def exists_at(self, at: float) -> bool:
        """Whether it was there, as far as watches tell."""
        return self.born_at <= at and (self.gone_at is None or at < self.gone_at)

    def is_gone_by(self, at: float) -> bool:
        """Whether it was gone then, as far as watches tell."""
        return self.gone_at is not None and self.gone_at <= at

    def content_at(self, at: float) -> Json:
        """Its content then; ``{}`` before its birth, the last one after its end."""
        found: Json = {}
        for when, body in self.bodies:
            if when > at:
                break
            found = body
        return found

    def contents_between(self, since: float, until: float) -> Iterator[Json]:
        """Each content that it had at some time in between; the last one is what it has after its end."""
        told = list(self.bodies)
        ends = [at for at, _ in told[1:]] + [_FOREVER]
        return (body for (at, body), ended in zip(told, ends, strict=True) if at <= until and ended > since)

    def runs_while(self, may_run: Callable[[Json], bool]) -> Iterator[tuple[float, float]]:
        """When it says so; what goes on at the end of the history goes on for ever."""
        since: float | None = None
        for at, body in self.bodies:
            if may_run(body) and since is None:
                since = at
            elif not may_run(body) and since is not None:
                yield since, at
                since = None
        if since is not None:
            yield since, _FOREVER if self.gone_at is None else self.gone_at


@dataclass(slots=True)
class Life(ObjectLife):
    """Of a source, a copy or a stranger."""

    kind: MirroredKind = field(kw_only=True)
    source: Owner | None = None
    """Of a copy: what its labels name."""
    is_deleted_by_manager: bool = False
    """A manager's request is what has deleted it, or begun to."""

    def __str__(self) -> str:
        return f"{self.kind.name} {self.key}"

    @property
    def owner(self) -> Owner:
        """What a copy names as its source if this is one."""
        return self.kind.name, self.uid

    @property
    def last_untouched(self) -> Json:
        """Its last content before it began to be deleted; the first one if it was so from the beginning."""
        contents = [body for _, body in self.bodies]
        return next((body for body in reversed(contents) if not is_going(body)), contents[0])

    @property
    def went_at(self) -> float | None:
        """When it began to be deleted, or was gone."""
        return next((at for at, body in self.bodies if is_going(body)), self.gone_at)

    def runs(self) -> Iterator[tuple[float, float]]:
        """When its controller may run it."""
        return self.runs_while(self.kind.may_run)


@dataclass(slots=True)
class PodLife(ObjectLife):
    """Of a pod on a worker."""

    @property
    def copy(self) -> tuple[str, str]:
        """The worker, and the uid of the Job that it is of."""
        labels = self.versions[0].body["metadata"].get("labels") or {} if self.versions[0].body else {}
        return self.cluster, str(labels.get(COPY_UID, ""))

    def runs(self) -> Iterator[tuple[float, float]]:
        """From when it has a node until it has ended or is gone: while it is being deleted, too."""
        return self.runs_while(_has_node)


def _has_node(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in _ENDED


L = TypeVar("L", bound=ObjectLife)


class Lives(Generic[L]):
    """Those of all objects whose versions are added, in the order in which they were seen."""

    def __init__(self, begin: Callable[[Version, str], L]) -> None:
        self._begin = begin
        """Makes one of its first version and its uid."""
        self.all: list[L] = []
        self._now: dict[tuple[str, str, str], L] = {}

    def add(self, version: Version) -> None:
        """What came next of its object, or of another one of that name."""
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
            life = self._now[place] = self._begin(version, uid)
            self.all.append(life)
        life.versions.append(version)
