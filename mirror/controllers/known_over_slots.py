"""What one of several managers that work at once knows, put for people (S1, S2).

A manager sees all sources, and what is written down of workers. Of those that it follows, or assigns workers to, its
instances know more, which come and go with their Leases. What only another manager knows is not here
(``access.elsewhere``), and said to be that one's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from mirror.controllers.known import Knowledge
from mirror.controllers.state import MirroringState
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model.keys import SourceKey
from mirror.model.views import JobView, Moment, WorkerView
from mirror.placement.explaining import Choice
from mirror.workers.worker import Worker

Held = Callable[[], Iterable[MirroringState]]
"""What the instances that run here know; they come and go."""


class Owners(Protocol):
    """Which manager does what."""

    @property
    def me(self) -> str: ...

    @property
    def assigner(self) -> str: ...

    def holder_of(self, worker: str) -> str: ...

    @property
    def holders(self) -> tuple[str, ...]:
        """Who holds each slot, in their order."""
        ...


def instance_for(held: Held, placed: str | None) -> MirroringState | None:
    """The instance here that follows this worker or, where there is none, assigns one; None: another manager's."""
    for one in held():
        if one.share.assigns if placed is None else (one.share.follows and one.share.has(placed)):
            return one
    return None


class WorkersOverSlots(Mapping[str, Worker]):
    """All workers, each as whoever here follows it knows it; those that others follow are ``is_remote``."""

    def __init__(self, every: Mapping[str, Worker], held: Held) -> None:
        """``every``: as they are written down."""
        self._every = every
        self._held = held

    def __getitem__(self, name: str) -> Worker:
        one = instance_for(self._held, name)
        if one is not None and (followed := one.workers.get(name)) is not None:
            return followed
        return self._every[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._every)

    def __len__(self) -> int:
        return len(self._every)


@dataclass(frozen=True, slots=True)
class KnowledgeOverSlots(Knowledge):
    """``model.views.Known``; ``state``: of the instance that sees all, and never works."""

    held: Held
    owners: Owners

    def workers(self) -> tuple[WorkerView, ...]:
        """All workers, by name."""
        written = Knowledge.workers(self)
        views = {view.name: msgspec.structs.replace(view, is_elsewhere=True) for view in written}
        for one in self.held():
            if one.share.follows:
                views |= {view.name: view for view in Knowledge(one).workers() if view.name in views}
        return tuple(views.values())

    def job(self, key: SourceKey) -> JobView | None:
        """One source."""
        here = self._here(key)
        return (here.job(key) if here is not None else None) or Knowledge.job(self, key)

    def timeline(self, key: SourceKey) -> tuple[Moment, ...]:
        """What happened to it, oldest first."""
        here = self._here(key)
        return (here.timeline(key) if here is not None else ()) or Knowledge.timeline(self, key)

    def placement_obstacles(self, key: SourceKey) -> Mapping[str, str]:
        """For each worker that is not eligible: why."""
        here = self._here(key)
        return (here.placement_obstacles(key) if here is not None else {}) or Knowledge.placement_obstacles(self, key)

    def kept_elsewhere(self, key: SourceKey) -> str:
        """What of it only another manager knows, and which."""
        found = self._get(key)
        if found is None or self._here(key) is not None:
            return ""
        placed = self.state.sources.kinds[key.kind].summary(found).placed
        owner, does = (
            (self.owners.assigner, "assigns workers")
            if placed is None
            else (self.owners.holder_of(placed), f"follows worker {placed}")
        )
        what = "what holds it up" if placed is None else "its history and how late its status is"
        if not owner:
            return f"No manager {does} now."
        if owner == self.owners.me:
            return f"This manager has just begun; it {does}."
        return f"Another manager ({owner}) {does} and alone knows {what}."

    def ownership(self) -> Hashable:
        """Who assigns, who holds each slot, and of what an instance runs here."""
        return self.owners.assigner, self.owners.holders, frozenset(one.share for one in self.held())

    def obstacles_of_draft(self, kind: Kind, draft: Object) -> Mapping[str, str]:
        """For one that does not exist yet."""
        one = instance_for(self.held, None)
        return Knowledge.obstacles_of_draft(self if one is None else Knowledge(one), kind, draft)

    def choice_for_draft(self, kind: Kind, draft: Object) -> Choice:
        """Where one that does not exist yet would be placed now, and why there."""
        one = instance_for(self.held, None)
        return Knowledge.choice_for_draft(self if one is None else Knowledge(one), kind, draft)

    def _here(self, key: SourceKey) -> Knowledge | None:
        """What the instance here knows whose it is."""
        found = self._get(key)
        if found is None:
            return None
        one = instance_for(self.held, self.state.sources.kinds[key.kind].summary(found).placed)
        return Knowledge(one) if one is not None else None
