"""What must be true where operators drain, cordon and forget workers, and where progress goes along with a move. Pure.

Not here: that a drained copy stops before it goes (``rules_deletions``), and runs nowhere beside (``rules_mirrors``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.history import Json
from e2e.chaos.kinds import JOB
from e2e.chaos.lives import Life
from e2e.chaos.reading import Moving, annotation, has_started, indexes, moves_in, moves_of, placed_on, recorded_uid
from e2e.chaos.story import LATE_SECONDS, MANAGEMENT, STALE_SECONDS, Story
from mirror.model import names

_CLOSING = (names.CORDONED, names.DRAIN, names.GONE)
_OPEN = {"", "false"}
_MOVING, _MOVING_STARTED = ("move", "move-started"), "move-started"
"""What operators say of a worker that is to be left, and by whom also that has started there."""
_POLICIES = {"Reschedule", "Fence"}
"""Of those who agree to that themselves."""
_REFUSALS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
"""Answers after which a copy begins anew."""


def closed_workers_get_nothing(story: Story) -> Verdicts:
    """D15: no source is newly recorded on a worker that is cordoned, drained or declared dead for a while."""
    for source in story.sources.values():
        before: Json = {}
        for at, body in source.bodies:
            worker, count = placed_on(body), moves_of(body).count
            # What counts again was there before: a copy that has won, or one whose successor was refused.
            is_back = moves_of(before).has_left(worker, recorded_uid(body))
            is_new = worker not in ("", placed_on(before)) and count >= moves_of(before).count and not is_back
            if is_new and source.kind.end(body) is None and (said := _said(story, worker, at)):
                closed = next((name for name in _CLOSING if not _OPEN & said[name]), "")
                text = f"{source} (uid {source.uid}) is recorded on {worker}, which has {closed}"
                yield Breach("closed", at, text) if closed else None
            before = body


def drained_by_somebody(story: Story) -> Verdicts:
    """D15: who leaves a worker for a drain, left one that was drained by moving; if it had started, by consent."""
    for source in story.sources.values():
        for move in moves_in(source.bodies):
            origin = move.said.origin
            if move.why != "drained" or ("secrets", origin) not in story.others:
                continue
            stopped_at = _stopped_at(story, source, move)
            said = story.said_by("secrets", origin, names.DRAIN, stopped_at - STALE_SECONDS, move.at)
            text = f"{source} (uid {source.uid}) was moved from {origin}"
            if not said.intersection(_MOVING):
                yield Breach("drained", move.at, f"{text}, which nobody drains by moving")
            elif _MOVING_STARTED not in said and _is_stopped_unasked(story, source, stopped_at):
                yield Breach("drained", move.at, f"{text}, where it had started, without consent")
            else:
                yield None


def seeds_hold(story: Story) -> Verdicts:
    """D14: a copy that is made after a move has what its source had counted before it runs, where that is on."""
    for owner, copies in story.mirrors.items():
        source = story.sources.get(owner)
        if source is None or source.kind is not JOB:
            continue
        for copy in copies:
            if (resumed := _first_that_runs(copy)) is None or story.came_back(copy):
                continue
            state = annotation(resumed, names.SEED)
            if not state and not (story.opening.seeds_progress and _is_moved_here(source, copy)):
                continue
            told = _had_counted(story, source, copy, resumed["spec"].get("completions"))
            yield _seed_of(story, copy, state, resumed, told)


def _said(story: Story, worker: str, at: float) -> dict[str, set[str]]:
    """What operators may have said of a worker when it was recorded; empty: nothing is known of it."""
    if ("secrets", worker) not in story.others:
        return {}
    return {name: story.said_by("secrets", worker, name, at - STALE_SECONDS, at) for name in _CLOSING}


def _stopped_at(story: Story, source: Life, move: Moving) -> float:
    """When the last copy that it had there stopped, which is when its worker must have been drained."""
    copies = (copy for copy in story.mirrors.get(source.owner, ()) if copy.cluster == move.said.origin)
    ends = (until for copy in copies for _, until in copy.runs() if until <= move.at)
    return story.stored_since(move.said.origin, max(ends, default=move.at))


def _is_stopped_unasked(story: Story, source: Life, at: float) -> bool:
    """Whether it had started by what its source had said for long, which neither suspends it nor has another policy."""
    told = list(source.contents_between(at - STALE_SECONDS, at))
    policies = set[str]().union(*(story.policies_of(source, body, at) for body in told))
    runs = (has_started(body, source.kind) and not source.kind.is_suspended(body) for body in told)
    return all(runs) and not policies & _POLICIES


def _first_that_runs(copy: Life) -> Json | None:
    return next((body for _, body in copy.bodies if copy.kind.may_run(body)), None)


def _is_moved_here(source: Life, copy: Life) -> bool:
    """Whether it was made where its source is recorded since a move."""
    said = source.content_at(copy.born_at)
    return moves_of(said).count > 0 and placed_on(said) == copy.cluster


def _had_counted(story: Story, source: Life, copy: Life, size: int | None) -> list[_Progress]:
    """What its source may have counted when a copy was made, of what this copy has: it may be smaller when it runs."""
    since = story.stored_since(copy.cluster, copy.born_at) - LATE_SECONDS
    bodies = source.contents_between(since, story.known_by(MANAGEMENT, copy.born_at))
    return [_Progress.of(body, most=size) for body in bodies]


def _seed_of(story: Story, copy: Life, state: str, resumed: Json, told: list[_Progress]) -> Breach | None:
    text = ""
    if state == names.SEED_REFUSED:
        text = "" if _was_refused(story, copy) else "without its progress, which nobody has refused"
    elif state == names.SEED_DONE:
        has = _Progress.of(resumed)
        is_right = any(has.includes(one) for one in told) and not has.exceeds(told)
        text = "" if is_right else f"with {has}, and had counted {told[-1]}"
    elif state or all(one.is_something for one in told):
        text = "before it has what was counted"
    where = f"{copy} (uid {copy.uid}) runs on {copy.cluster}"
    return Breach("seed", copy.born_at, f"{where} {text}") if text else None


def _was_refused(story: Story, copy: Life) -> bool:
    """Whether the worker has refused a status of it."""
    return any(
        asked.subresource == "status"
        and (asked.cluster, asked.resource, asked.key) == (copy.cluster, copy.kind.name, copy.key)
        and asked.code in _REFUSALS
        and copy.exists_at(asked.at)
        for asked in story.requests
    )


@dataclass(frozen=True, slots=True)
class _Progress:
    completed: frozenset[int]
    failed_indexes: frozenset[int]
    succeeded: int
    failed: int

    @classmethod
    def of(cls, body: Json, *, most: int | None = None) -> _Progress:
        """Without ``completions`` one success ends a Job, so that a success is no progress of it.

        Of who has indexes they are what is counted. ``most``: of a smaller size than its own.
        """
        status, spec = body.get("status") or {}, body["spec"]
        sizes = [size for size in (spec.get("completions"), most) if size is not None]
        size = min(sizes, default=None)
        completed = {one for one in indexes(status.get("completedIndexes", "")) if size is None or one < size}
        failed = {one for one in indexes(status.get("failedIndexes", "")) if size is None or one < size}
        succeeded = 0 if size is None else min(size, int(status.get("succeeded") or 0))
        if spec.get("completionMode") == "Indexed":
            succeeded = len(completed)
        return cls(frozenset(completed), frozenset(failed - completed), succeeded, int(status.get("failed") or 0))

    @property
    def is_something(self) -> bool:
        """Whether there is anything to go along."""
        return bool(self.completed or self.failed_indexes or self.succeeded or self.failed)

    def includes(self, other: _Progress) -> bool:
        """Whether nothing of another one is lacking."""
        has_indexes = self.completed >= other.completed and self.failed_indexes | self.completed >= other.failed_indexes
        return has_indexes and self.succeeded >= other.succeeded and self.failed >= other.failed

    def exceeds(self, others: Iterable[_Progress]) -> bool:
        """Whether it has something that none of the others has."""
        listed = list(others)
        return (
            not self.completed <= frozenset[int]().union(*(one.completed for one in listed))
            or self.succeeded > max(one.succeeded for one in listed)
            or self.failed > max(one.failed for one in listed)
        )

    def __str__(self) -> str:
        listed = sorted(self.completed)
        return f"{self.succeeded} succeeded {listed[:20]}, {self.failed} failed {sorted(self.failed_indexes)[:20]}"
