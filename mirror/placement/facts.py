"""What is known of workers for the Jobs of one namespace or queue, as shares of what is free there. Pure.

Filled by ``controllers.assigning``; ``index`` asks it for each choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mirror.placement.candidates import PlacementRequest
from mirror.placement.policy import Score

Subject = tuple[str, str]
"""Whose: a namespace of sources, and in it the name of a queue; empty for all Jobs of the namespace."""
OTHERS: Subject = "", ""
"""All queues of a worker that are not named."""

_SUBJECTS: Mapping[Score, Callable[[PlacementRequest], Subject]] = {
    Score.QUOTA: lambda request: (request.namespace, ""),
    Score.CLUSTER_QUEUE: lambda request: (request.namespace, request.queue),
}
"""By score that depends on the Job: whose share counts for it."""


class FactsOfJobs:
    """Shares by score, subject and worker. Invariant: nothing in it is empty."""

    def __init__(self) -> None:
        self._shares: dict[Score, dict[Subject, dict[str, float]]] = {}

    def put(self, score: Score, worker: str, shares: Mapping[Subject, float]) -> None:
        """So much is free on a worker; nothing is known of what is not named."""
        known = self._shares.setdefault(score, {})
        for subject in [one for one, workers in known.items() if worker in workers and one not in shares]:
            del known[subject][worker]
            if not known[subject]:
                del known[subject]
        for subject, share in shares.items():
            known.setdefault(subject, {})[worker] = share
        if not known:
            del self._shares[score]

    def remove(self, worker: str) -> None:
        """A worker is registered no more."""
        for score in list(self._shares):
            self.put(score, worker, {})

    def concern(self, request: PlacementRequest) -> bool:
        """Whether any worker is another to a source with this request than to the others."""
        return any(
            _SUBJECTS[score](request) in known or (request.queue and OTHERS in known)
            for score, known in self._shares.items()
        )

    def of(self, worker: str, request: PlacementRequest) -> dict[Score, float]:
        """What is free on a worker for a source with this request, where it is known."""
        found = {}
        for score, known in self._shares.items():
            share = known.get(_SUBJECTS[score](request), {}).get(worker)
            if share is None and request.queue:
                share = known.get(OTHERS, {}).get(worker)
            if share is not None:
                found[score] = share
        return found
