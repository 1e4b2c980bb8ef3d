"""What sources say that was counted: never more than their copies did, and at the end all that the copy had. Pure.

Of Jobs alone. Not here: that it does not go back (``rules_sources``), and what goes along with a move
(``rules_operators``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.history import Json
from e2e.chaos.kinds import JOB
from e2e.chaos.lives import Life
from e2e.chaos.reading import indexes, indexes_of, least_succeeded
from e2e.chaos.rules_sources import ended_so, first_end
from e2e.chaos.story import LATE_SECONDS, Story


def counted_as_copies_do(story: Story) -> Verdicts:
    """D6, D7: a source shows no success and no failure that none of its copies had, and ends with those of its copy."""
    for owner, source in story.sources.items():
        if source.kind is JOB:
            copies = story.mirrors.get(owner, ())
            yield _invented(story, source, copies) or _left_out(story, source, copies)


@dataclass(slots=True)
class _Counted:
    """What copies have shown, together; of what has no name, as pods, the most that one of them had."""

    completed: set[int] = field(default_factory=set)
    failed_indexes: set[int] = field(default_factory=set)
    succeeded: int = 0
    failed: int = 0

    def add(self, status: Json) -> None:
        """What one of them shows."""
        self.completed |= indexes(status.get("completedIndexes", ""))
        self.failed_indexes |= indexes(status.get("failedIndexes", ""))
        self.succeeded = max(self.succeeded, status.get("succeeded") or 0)
        self.failed = max(self.failed, status.get("failed") or 0)

    def lacks(self, status: Json) -> str:
        """What a status says that this has not; empty: nothing."""
        completed, failed_indexes = (indexes(status.get(name, "")) for name in ("completedIndexes", "failedIndexes"))
        if more := completed - self.completed:
            return f"completed {sorted(more)[:5]}"
        if more := failed_indexes - self.failed_indexes:
            return f"failed {sorted(more)[:5]}"
        succeeded, failed = status.get("succeeded") or 0, status.get("failed") or 0
        if succeeded > max(self.succeeded, len(self.completed)):
            return f"{succeeded} successes, and no copy more than {self.succeeded}"
        return f"{failed} failures, and no copy more than {self.failed}" if failed > self.failed else ""


def _invented(story: Story, source: Life, copies: Iterable[Life]) -> Breach | None:
    """The first version that says more than the copies had by then."""
    shown = [(story.stored_since(copy.cluster, at), body) for copy in copies for at, body in copy.bodies]
    shown.sort(key=lambda one: one[0], reverse=True)
    counted = _Counted()
    for at, body in source.bodies:
        while shown and shown[-1][0] <= at + LATE_SECONDS:
            counted.add(shown.pop()[1].get("status") or {})
        status = body.get("status") or {}
        if not (more := counted.lacks(status)):
            continue
        if not any(story.may_have_missed(copy.cluster, at) for copy in copies):
            return Breach("counted", at, f"{source} (uid {source.uid}) shows {more}, which no copy had")
        counted.add(status)
    return None


def _left_out(story: Story, source: Life, copies: Iterable[Life]) -> Breach | None:
    """An end that lacks something of each copy that has ended so."""
    if (end := first_end(source)) is None:
        return None
    so = (copy for copy in copies if ended_so(copy, end, story.known_by(copy.cluster, end.at)))
    # One that was gone when it was only known how it would end has counted on until then.
    ended = [body for copy in so if (body := _ended(copy)) is not None]
    if not ended or any(_has_all_of(end.body, one) for one in ended):
        return None
    shown, had = end.body.get("status") or {}, ended[-1].get("status") or {}
    return Breach(
        "counted", end.at, f"{source} (uid {source.uid}) ended with {_of(shown)}, and its copy with {_of(had)}"
    )


def _ended(copy: Life) -> Json | None:
    return next((body for _, body in copy.bodies if copy.kind.end(body) is not None), None)


def _has_all_of(source: Json, copy: Json) -> bool:
    """Whether a source that has this size has counted all that a copy had."""
    shown, had = source.get("status") or {}, copy.get("status") or {}
    is_indexed = indexes_of(source, had.get("completedIndexes", "")) <= indexes(shown.get("completedIndexes", ""))
    least = {"succeeded": least_succeeded(source, had), "failed": had.get("failed") or 0}
    return is_indexed and all((shown.get(counter) or 0) >= floor for counter, floor in least.items())


def _of(status: Json) -> Json:
    counters = ("succeeded", "failed", "completedIndexes", "failedIndexes")
    return {name: status[name] for name in counters if name in status}
