"""What must be true of mirrors, by the whole history: one copy, recorded first, nothing foreign, nothing left. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from itertools import combinations, pairwise

from e2e.chaos.breaches import Breach
from e2e.chaos.history import Request
from e2e.chaos.kinds import condition
from e2e.chaos.story import LATE_SECONDS, MANAGEMENT, Life, Owner, Story, annotation, placed_on
from mirror.model import names

FENCE_SECONDS = 180.0
"""The margin of a lease, and pods' grace period: what was broken on the worker only before that hindered it no more."""
_FOREVER = float("inf")


def one_copy(story: Story) -> Iterator[Breach]:
    """D2: of one source only one copy may run at a time; under ``Reschedule`` two, if the source counts the other."""
    for owner, mirrors in story.mirrors.items():
        for first, second in combinations(mirrors, 2):
            for since, until in _together(story, first, second):
                if until - since > LATE_SECONDS and not _is_allowed(story, owner, first, second, since):
                    where = f"on {first.cluster} (uid {first.uid}) and {second.cluster} (uid {second.uid})"
                    yield Breach("one-copy", since, f"{second} may run {where} for {until - since:.1f} s")
                    break


def second_copies_have_a_reason(story: Story) -> Iterator[Breach]:
    """D2, D11, D14: whoever gets another copy was moved, or asked for it, or its worker had lost data."""
    for owner, mirrors in story.mirrors.items():
        source = story.sources.get(owner)
        if source is None:
            continue
        unexplained = 0
        for earlier, later in pairwise(mirrors):
            if not _may_replace(story, source, earlier, later):
                unexplained += 1
            moves = _moves(source, story.known_by(MANAGEMENT, later.born_at))
            if unexplained > moves:
                text = f"copy on {later.cluster} (uid {later.uid}) after that on {earlier.cluster}, with {moves} moves"
                yield Breach("second-copy", later.born_at, f"{later}: {text}")
                break


def recorded_first(story: Story) -> Iterator[Breach]:
    """D5, D24: a source of the copy's kind names the worker before the copy is there."""
    for owner, mirrors in story.mirrors.items():
        source = story.sources.get(owner)
        for mirror in mirrors:
            if source is None:
                yield Breach("recorded-first", mirror.born_at, f"{mirror} is on {mirror.cluster}, a copy of nothing")
                continue
            by = story.known_by(MANAGEMENT, mirror.born_at)
            before = (body for at, body in source.bodies if at <= by)
            if not any(placed_on(body) == mirror.cluster for body in before):
                yield Breach("recorded-first", mirror.born_at, f"{mirror} is on {mirror.cluster}, not recorded")


def nothing_foreign(story: Story) -> Iterator[Breach]:
    """D1, D10: managers change only what is theirs, and delete no source."""
    users = set(story.opening.users)
    for asked in story.requests:
        if asked.user not in users or asked.code >= HTTPStatus.BAD_REQUEST or asked.verb == "create":
            continue
        if asked.cluster == MANAGEMENT:
            if asked.verb.startswith("delete"):
                yield Breach("foreign", asked.at, f"a manager deleted the source {asked.resource} {asked.key}")
            elif _met_only(story, asked, story.unmanaged, story.sources.values()):
                text = f"a manager wrote {asked.resource} {asked.key}, which does not name it"
                yield Breach("foreign", asked.at, text)
        elif _met_only(story, asked, story.foreign, (one for lives in story.mirrors.values() for one in lives)):
            text = f"a manager did {asked.verb} to {asked.resource} {asked.key} on {asked.cluster}, a stranger"
            yield Breach("foreign", asked.at, text)


def no_mirror_is_left(story: Story) -> Iterator[Breach]:
    """D2, D10: once all is healed each copy is its source's only one, and where the source says; none outlives it."""
    if "emptied" not in story.phases:
        return  # who was broken off has shown nothing (``all_have_ended``)
    settled, emptied = story.phases["settled"], story.phases["emptied"]
    for owner, mirrors in story.mirrors.items():
        source = story.sources.get(owner)
        for mirror in mirrors:
            if mirror.exists_at(emptied):
                yield Breach("left-behind", emptied, f"{mirror} is still on {mirror.cluster}, its source is gone")
            elif mirror.exists_at(settled):
                if source is None or not source.exists_at(settled):
                    yield Breach("left-behind", settled, f"{mirror} on {mirror.cluster} has no source")
                elif placed_on(source.content_at(settled)) != mirror.cluster:
                    yield Breach("left-behind", settled, f"{mirror} is on {mirror.cluster}, recorded elsewhere")


def _together(story: Story, first: Life, second: Life) -> Iterator[tuple[float, float]]:
    """When both may run; an end that may have been told late counts from when it may have been stored."""
    for a, b in _running(first):
        for c, d in _running(second):
            until = min(story.stored_since(first.cluster, b), story.stored_since(second.cluster, d))
            if max(a, c) < until:
                yield max(a, c), until


def _running(life: Life) -> Iterator[tuple[float, float]]:
    """When it may run; what goes on at the end of the history goes on for ever."""
    since: float | None = None
    for at, body in life.bodies:
        if life.kind.may_run(body) and since is None:
            since = at
        elif not life.kind.may_run(body) and since is not None:
            yield since, at
            since = None
    if since is not None:
        yield since, _FOREVER if life.gone_at is None else life.gone_at


def _is_allowed(story: Story, owner: Owner, first: Life, second: Life, at: float) -> bool:
    """Whether this source may have both then."""
    source = story.sources.get(owner)
    if source is None or any(story.was_restored(one, by=at) for one in (first, second)):
        return source is not None
    by = story.known_by(MANAGEMENT, at)
    return any(_was_risked(story, source, one, at, by) for one in (first, second))


def _was_risked(story: Story, source: Life, copy: Life, at: float, by: float) -> bool:
    """Whether the source counts this copy as one that may still run, by the policy that it had when it was moved."""
    for when, body in source.bodies:
        if when > by:
            return False
        if _is_left_behind(copy, str((condition(body, names.MOVED) or {}).get("message", ""))):
            # The lease of a fence is the worker's to enforce, with all that is there for it.
            policy = annotation(body, names.ON_WORKER_LOSS) or story.opening.on_loss
            is_hindered = story.had_fault(copy.cluster, at - FENCE_SECONDS, at)
            return policy == "Reschedule" or (policy == "Fence" and is_hindered)
    return False


def _is_left_behind(copy: Life, told: str) -> bool:
    """Whether the source counts this copy among those that it left behind."""
    return any(f"{copy.cluster} (uid {uid}" in told for uid in (copy.uid, "unknown"))


def _may_replace(story: Story, source: Life, earlier: Life, later: Life) -> bool:
    if story.was_restored(earlier, by=later.born_at):
        return True
    was_over = earlier.gone_at is not None and earlier.gone_at <= story.known_by(earlier.cluster, later.born_at)
    wanted = annotation(source.content_at(later.born_at), names.ON_MIRROR_LOSS)
    if was_over and wanted == "Recreate":
        return True
    ended = earlier.kind.end(earlier.last) or {}
    return (
        was_over
        and ended.get("reason") == "DeadlineExceeded"
        and names.FENCE in (earlier.last["metadata"].get("annotations") or {})
    )


def _moves(source: Life, at: float) -> int:
    """How often it says that it was moved, at most, by then."""
    most = 0
    for when, body in source.bodies:
        if when > at:
            break
        told = (condition(body, names.MOVED) or {}).get("message", "")
        count = told.removeprefix("move ").partition(",")[0]
        most = max(most, int(count) if count.isdecimal() else 0)
    return most


def _met_only(story: Story, asked: Request, strangers: Iterable[Life], ours: Iterable[Life]) -> bool:
    """Whether what the request met can only have been a stranger."""

    def met(life: Life) -> bool:
        is_there = story.stored_since(life.cluster, life.born_at) - LATE_SECONDS <= asked.at
        is_not_gone = life.gone_at is None or life.gone_at + LATE_SECONDS >= asked.received
        is_named = (life.cluster, life.kind.name, life.key) == (asked.cluster, asked.resource, asked.key)
        return is_named and is_there and is_not_gone

    return any(map(met, strangers)) and not any(map(met, ours))
