"""What a user may see, with a login (setting page.login); pages are made of that alone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from mirror.model.views import JobView, WorkerView


class Scope(msgspec.Struct, frozen=True):
    """Kinds and namespaces whose Jobs may be listed."""

    places: frozenset[tuple[str, str]]

    def has(self, job: JobView) -> bool:
        """Whether a Job may be seen."""
        return (job.kind, job.namespace) in self.places


def seen_workers(workers: Iterable[WorkerView], named: Collection[str]) -> tuple[WorkerView, ...]:
    """Workers for who may not see all Jobs: those their own are on, and of these only what their Jobs say anyway."""
    return tuple(
        WorkerView(
            name=one.name,
            state=one.state,
            since=one.since,
            lost_since=one.lost_since,
            is_elsewhere=one.is_elsewhere,
        )
        for one in workers
        if one.name in named
    )
