"""Answers ``diff``: how a mirror differs from its source, or will, and what its pods need where they run (D18, D27).

Used by ``service``, once the rights are sure. Not here: what differs (``kinds``), and what is where (``looking``).
"""

from __future__ import annotations

from collections.abc import Mapping

from mirror.access.answers import StatusError
from mirror.access.comparing import Comparing
from mirror.access.looking import Looked, Looking
from mirror.access.mirrors import Mirrors
from mirror.access.reviews import Person
from mirror.access.sources import AccessSources
from mirror.kinds.base import Kind
from mirror.kinds.report import Report
from mirror.kube.objects import Object, Partial, size_of
from mirror.model.keys import SourceKey
from mirror.workers.worker import Worker


class Differing:
    """Make it with what ``access`` has."""

    def __init__(self, manager: AccessSources, mirrors: Mirrors, looking: Looking, comparing: Comparing) -> None:
        self._manager = manager
        self._mirrors = mirrors
        self._looking = looking
        self._comparing = comparing

    async def of_source(self, kind: Kind, source: Object, person: Person) -> Mapping[str, object]:
        """How its mirror differs, or would, while it has none.

        Raises:
            StatusError: its mirror is not there any more, is another one, is too large, or out of reach.
        """
        manager, summary = self._manager, kind.summary(source)
        if summary.placed is None:
            lacks = {} if summary.is_finished else dict(manager.known.placement_obstacles(_key(kind, source)))
            return await self._before_its_mirror(kind, source, person, lacks)
        try:
            mirror = self._mirrors.mirror(kind, source)
        except StatusError as error:
            if error.code != 409 or summary.mirror_uid is not None or summary.is_finished:
                raise
            # What keeps its mirror from being made may be among what it needs.
            worker = manager.workers[summary.placed]
            report = await self._comparing.run(lambda: self._before(kind, source), size_of(source))
            looked = await self._looking.look([worker], kind, source, person)
            return _comparison(report, looked, worker=worker.name, note=error.message)
        if isinstance(mirror.found, Partial):
            raise StatusError(503, f"the mirror on worker {summary.placed} is too large to be compared")
        report = await self._comparing.run(
            lambda: kind.differences_between(
                source, mirror.found, transform=manager.transform, managed_by=manager.managed_by
            ),
            size_of(source) + size_of(mirror.found),
        )
        looked = await self._looking.look([mirror.worker], kind, source, person)
        return _comparison(report, looked, worker=summary.placed, mirror=mirror.uid)

    async def of_draft(self, kind: Kind, draft: Object, person: Person) -> Mapping[str, object]:
        """What will differ once it is created and mirrored; it need not exist."""
        lacks = dict(self._manager.obstacles_of_draft(kind, draft))
        return await self._before_its_mirror(kind, draft, person, lacks)

    async def _before_its_mirror(
        self, kind: Kind, source: Object, person: Person, lacks: Mapping[str, str]
    ) -> Mapping[str, object]:
        """Of one without a worker: those that could take it are looked at."""
        report = await self._comparing.run(lambda: self._before(kind, source), size_of(source))
        eligible = [
            worker
            for name, worker in sorted(self._manager.workers.items(), key=_those_of_others_last)
            if worker.is_reachable and name not in lacks and "" not in lacks
        ]
        looked = await self._looking.look(eligible, kind, source, person)
        return {**_comparison(report, looked), "lacks": lacks}

    def _before(self, kind: Kind, source: Object) -> Report:
        manager = self._manager
        return kind.differences_before(source, transform=manager.transform, managed_by=manager.managed_by)


def _those_of_others_last(one: tuple[str, Worker]) -> tuple[bool, str]:
    """What another manager follows cannot be looked at from here."""
    name, worker = one
    return worker.is_remote, name


def _key(kind: Kind, source: Object) -> SourceKey:
    return SourceKey(kind.name, source.metadata.namespace, source.metadata.name)


def _comparison(
    report: Report, looked: Looked, *, worker: str = "", mirror: str = "", note: str = ""
) -> Mapping[str, object]:
    return {
        "worker": worker,
        "mirror": mirror,
        "report": report,
        "goesAlong": looked.goes_along,
        "onWorker": looked.on_worker,
        "leftOut": looked.left_out,
        "note": note,
    }
