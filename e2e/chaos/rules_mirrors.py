"""What must be true of mirrors, by the whole history: one copy, recorded first, nothing foreign, nothing left. Pure.

Not here: which of them managers may delete (``rules_deletions``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from itertools import combinations, pairwise

from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.history import Json, Request
from e2e.chaos.lives import Life
from e2e.chaos.reading import (
    annotation,
    has_proved_unstarted,
    has_started,
    is_ended_by_lease,
    is_leaving,
    lease_end,
    moves_in,
    moves_of,
    placed_on,
)
from e2e.chaos.story import LATE_SECONDS, MANAGEMENT, ORDER_SECONDS, Story, may_have_met
from mirror.model import names

_ENFORCED_SECONDS = (-10.0, 60.0)
"""From the end of a lease: when what is broken may keep a worker from enforcing it."""
FENCE_NEEDS = ("kube-apiserver", "etcd", "kube-controller-manager", "kwok")
"""The programs of a worker that end a Job whose lease is over, and its pods."""


def one_copy(story: Story) -> Verdicts:
    """D2: of one source only one copy may run at a time; under ``Reschedule`` two, if the source counts the other."""
    for owner, mirrors in story.mirrors.items():
        source = story.sources.get(owner)
        for first, second in combinations(mirrors, 2):
            yield _overlap(story, source, first, second)


def second_copies_have_a_reason(story: Story) -> Verdicts:
    """D2, D11, D14: whoever gets another copy was moved, or asked for it, or its worker had lost data."""
    for owner, mirrors in story.mirrors.items():
        source = story.sources.get(owner)
        if source is None:
            continue
        for earlier, later in pairwise(mirrors):
            if _may_replace(story, source, earlier, later) or _is_moved_since(story, source, earlier, later):
                yield None
            else:
                text = f"copy on {later.cluster} (uid {later.uid}) after that on {earlier.cluster} (uid {earlier.uid})"
                yield Breach("second-copy", later.born_at, f"{later}: {text}, not moved since")


def recorded_first(story: Story) -> Verdicts:
    """D5, D24: a source of the copy's kind names the worker when the copy comes, or that it left a copy there."""
    for owner, mirrors in story.mirrors.items():
        source = story.sources.get(owner)
        for mirror in mirrors:
            text = f"{mirror} is on {mirror.cluster}"
            if source is None:
                yield Breach("recorded-first", mirror.born_at, f"{text}, a copy of nothing")
            elif story.came_back(mirror) or _is_expected(story, source, mirror):
                yield None
            else:
                yield Breach("recorded-first", mirror.born_at, f"{text}, not recorded")


def left_copies_stay_named(story: Story) -> Verdicts:
    """D14: what a source has left on a worker it names until that is gone, or counts again."""
    for owner, source in story.sources.items():
        for (_, before), (at, body) in pairwise(source.bodies):
            now, named = moves_of(body), {(one.worker, one.uid) for one in moves_of(before).left}
            for copy in story.mirrors.get(owner, ()):
                if (copy.cluster, copy.uid) not in named or now.may_have_left(copy.cluster, copy.uid):
                    continue
                is_there = copy.born_at < at and not copy.is_gone_by(story.known_by(copy.cluster, at))
                text = f"{source} does not name its copy on {copy.cluster} (uid {copy.uid}) any more, which is there"
                is_wrong = is_there and placed_on(body) != copy.cluster
                yield Breach("named", at, text) if is_wrong else None


def nothing_foreign(story: Story) -> Verdicts:
    """D1, D10: managers change and make only what is theirs, one at a time, and delete no source."""
    users, born = set(story.opening.users), _born_of(story)
    for asked in story.requests:
        if asked.user not in users or asked.code >= HTTPStatus.BAD_REQUEST:
            continue
        text = ""
        if asked.verb == "create":
            there = [one for one in born[asked.cluster, asked.resource, asked.key] if _is_made_by(story, asked, one)]
            if there and not any(one.source for one in there):
                text = f"a manager made {asked.resource} {asked.key} on {asked.cluster}, which does not say whose it is"
        elif asked.verb == "deletecollection":
            text = f"a manager deleted all {asked.resource} of {asked.key} on {asked.cluster}"
        elif asked.cluster == MANAGEMENT:
            if asked.verb.startswith("delete"):
                text = f"a manager deleted the source {asked.resource} {asked.key}"
            elif _met_only(story, asked, story.unmanaged, story.sources.values()):
                text = f"a manager wrote {asked.resource} {asked.key}, which does not name it"
        elif _met_only(story, asked, story.foreign, (one for lives in story.mirrors.values() for one in lives)):
            text = f"a manager did {asked.verb} to {asked.resource} {asked.key} on {asked.cluster}, a stranger"
        yield Breach("foreign", asked.at, text) if text else None


def no_mirror_is_left(story: Story) -> Verdicts:
    """D2, D10: once all is healed each copy is its source's only one, and where the source says; none outlives it."""
    if "emptied" not in story.phases:
        return  # who was broken off has shown nothing (``all_have_ended``)
    settled, emptied = story.phases["settled"], story.phases["emptied"]
    for owner, mirrors in story.mirrors.items():
        source = story.sources.get(owner)
        for mirror in mirrors:
            at, text = settled, ""
            if mirror.exists_at(emptied):
                at, text = emptied, f"{mirror} is still on {mirror.cluster}, its source is gone"
            elif mirror.exists_at(settled):
                if source is None or not source.exists_at(settled):
                    text = f"{mirror} on {mirror.cluster} has no source"
                elif placed_on(source.content_at(settled)) != mirror.cluster and not _is_kept(
                    story, source.content_at(settled), mirror, settled
                ):
                    text = f"{mirror} is on {mirror.cluster}, recorded elsewhere"
            yield Breach("left-behind", at, text) if text else None


def _born_of(story: Story) -> Mapping[tuple[str, str, str], list[Life]]:
    """All that ever was on workers, by cluster, kind and name."""
    found: defaultdict[tuple[str, str, str], list[Life]] = defaultdict(list)
    for life in (*story.foreign, *(one for lives in story.mirrors.values() for one in lives)):
        found[life.cluster, life.kind.name, life.key].append(life)
    return found


def _is_made_by(story: Story, asked: Request, life: Life) -> bool:
    return asked.received <= life.born_at <= story.known_by(asked.cluster, asked.at)


def _is_kept(story: Story, source: Json, mirror: Life, at: float) -> bool:
    """Whether settings want this copy kept, which was left there and does not run."""
    is_left = moves_of(source).may_have_left(mirror.cluster, mirror.uid)
    return story.opening.suspends_losers and is_left and not mirror.kind.may_run(mirror.content_at(at))


def _overlap(story: Story, source: Life | None, first: Life, second: Life) -> Breach | None:
    """Two copies of one source may both run; an end that may have been told late counts from when it was stored."""
    for a, b in first.runs():
        for c, d in second.runs():
            since = max(a, c)
            until = min(story.stored_since(first.cluster, b), story.stored_since(second.cluster, d))
            is_allowed = source is not None and may_both_run(story, source, (first, a), (second, c))
            if until - since <= LATE_SECONDS or is_allowed:
                continue
            where = f"on {first.cluster} (uid {first.uid}) and {second.cluster} (uid {second.uid})"
            return Breach("one-copy", since, f"{second} may run {where} for {until - since:.1f} s")
    return None


def may_both_run(story: Story, source: Life, *running: tuple[Life, float]) -> bool:
    """Whether this source may have both, of which each runs since some time (D2, D14)."""
    if any(story.was_revived(*one) for one in running):
        return True
    at = max(since for _, since in running)
    by = story.known_by(MANAGEMENT, at)
    return any(_was_risked(story, source, copy, since, by) for copy, since in running)


def _was_risked(story: Story, source: Life, copy: Life, since: float, by: float) -> bool:
    """Whether the source counts this copy as one that may still run, by the policy that it had when it was moved.

    Not one that had stopped and runs again since it was left.
    """
    for when, body in source.bodies:
        if when > by:
            return False
        if (left := moves_of(body).left_copy(copy.cluster, copy.uid)) is None:
            continue
        if _is_resumed_after(story, copy, when + LATE_SECONDS, since):
            return False
        if left.promise == "gone":
            return story.is_declared_dead(copy.cluster, when)
        policies = story.policies_of(source, body, when)
        if left.promise == "fenced":
            return "Fence" in policies and _is_lease_hindered(story, copy)
        return "Reschedule" in policies
    return False


def _is_resumed_after(story: Story, copy: Life, at: float, by: float) -> bool:
    """Whether what runs of it by then is not its first run, and began after a time: not by what was sent before."""
    began = [since for since, _ in copy.runs() if since <= by]
    hold_ups = story.hold_ups(f"way to {copy.cluster}", copy.cluster)
    is_late = any(since <= at and until + LATE_SECONDS >= began[-1] for since, until in hold_ups)
    return len(began) > 1 and began[-1] > at and not is_late


def _is_lease_hindered(story: Story, copy: Life) -> bool:
    """Whether something was broken that has to end it when its lease is over: that is its worker's to enforce."""
    ends = {end for _, body in copy.bodies if (end := lease_end(body)) is not None}
    early, late = _ENFORCED_SECONDS
    return any(story.had_fault(copy.cluster, end + early, end + late, of=FENCE_NEEDS) for end in ends)


def _may_replace(story: Story, source: Life, earlier: Life, later: Life) -> bool:
    """Whether a copy needs no move to follow another one."""
    if story.came_back(later):
        return True
    if earlier.gone_at is None or earlier.gone_at > story.known_by(earlier.cluster, later.born_at):
        return False
    by = story.known_by(MANAGEMENT, later.born_at)
    is_unstarted = any(has_proved_unstarted(body, earlier.uid) for at, body in source.bodies if at <= by)
    if is_unstarted or is_ended_by_lease(earlier.last, earlier.kind, source.last):
        return True
    told = [
        body for body in _told_at(story, source, earlier.cluster, earlier.gone_at) if placed_on(body) == earlier.cluster
    ]
    if any(is_leaving(body, earlier.uid) for body in told):
        return True  # for a drain that was cancelled since: it is made again where it was (D15)
    wants_another = annotation(source.content_at(later.born_at), names.ON_MIRROR_LOSS) == "Recreate"
    is_nothing_lost = any(not has_started(body, source.kind) for body in told)
    return bool(told) and (wants_another or is_nothing_lost) and not earlier.is_deleted_by_manager


def _is_expected(story: Story, source: Life, mirror: Life) -> bool:
    """Whether its source has it on this worker when it comes; what is late there was sent before, which is counted."""
    return any(
        placed_on(body) == mirror.cluster or moves_of(body).may_have_left(mirror.cluster, mirror.uid)
        for body in _told_at(story, source, mirror.cluster, mirror.born_at, within=ORDER_SECONDS)
    )


def _told_at(story: Story, source: Life, cluster: str, at: float, *, within: float = LATE_SECONDS) -> Iterator[Json]:
    """What a source may have said when something was stored in a cluster that the history has at this time."""
    since = story.stored_since(cluster, at) - LATE_SECONDS
    return source.contents_between(since, story.known_by(MANAGEMENT, at, within=within))


def _is_moved_since(story: Story, source: Life, earlier: Life, later: Life) -> bool:
    """Whether it was moved between two copies, away from the first one or after it; or has said that both may be."""
    since = story.stored_since(earlier.cluster, earlier.born_at) - LATE_SECONDS
    by = story.known_by(MANAGEMENT, later.born_at)
    told = source.contents_between(since, by)
    if any(moves_of(body).may_have_left(later.cluster, later.uid) for body in told):
        return True
    return any(
        since <= move.at <= by and (move.said.origin == earlier.cluster or move.at > earlier.born_at + LATE_SECONDS)
        for move in moves_in(source.bodies)
    )


def _met_only(story: Story, asked: Request, strangers: Iterable[Life], ours: Iterable[Life]) -> bool:
    """Whether what the request met can only have been a stranger."""

    def is_among(lives: Iterable[Life]) -> bool:
        return any(may_have_met(story, asked, life) for life in lives)

    return is_among(strangers) and not is_among(ours)
