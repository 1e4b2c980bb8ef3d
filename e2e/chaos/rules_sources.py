"""What must be true of sources: a status never goes back, an end is a copy's, capacity is held, all end. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.history import Json, Version
from e2e.chaos.kinds import KINDS, MirroredKind, condition
from e2e.chaos.lives import Life
from e2e.chaos.reading import annotation, indexes, indexes_of, least_succeeded, moves_of, placed_on, recorded_uid
from e2e.chaos.story import STALE_SECONDS, Story
from mirror.model import names

_NO_COPY_KNOWS = ("MirrorLost",)
"""Reasons that no worker's controller gives: they are ours."""
_WHOLE_SECONDS = 1.0
"""Times in statuses are whole seconds."""


def never_back(story: Story) -> Verdicts:
    """D7: what a status has said it does not take back."""
    for source in story.sources.values():
        before: Json | None = None
        for at, body in source.bodies:
            what = "" if before is None else _taken_back(source.kind, before, body)
            if what:
                yield Breach("never-back", at, f"{source} (uid {source.uid}): {what}")
                break
            if before is not None:
                yield None
            before = body


def ends_are_true(story: Story) -> Verdicts:
    """D7, D11: a source ends as the copy that counts has ended; without one only if that had vanished by itself."""
    for owner, source in story.sources.items():
        if (end := first_end(source)) is None:
            continue
        reason, copies = end.verdict.get("reason", ""), story.mirrors.get(owner, [])
        text = f"{source} (uid {source.uid}) is {end.verdict['type']} ({reason}) on {placed_on(end.body)}"
        if reason in _NO_COPY_KNOWS:
            is_true, but = any(_vanished(story, copy, end) for copy in copies), "but its copy there had not vanished"
        else:
            is_true = any(ended_so(copy, end, story.known_by(copy.cluster, end.at)) for copy in copies)
            is_true |= story.may_have_missed(placed_on(end.body), end.at)
            but = f"and of its {len(copies)} copies none that counts was"
        yield None if is_true else Breach("true-end", end.at, f"{text}, {but}")


def leases_are_no_verdict(story: Story) -> Verdicts:
    """D14: the deadline of a fence is not the user's, which counts from the start of the copy."""
    for owner, source in story.sources.items():
        end = first_end(source)
        if end is None or end.verdict.get("reason") != "DeadlineExceeded":
            continue
        deadline = end.body["spec"].get("activeDeadlineSeconds")
        if deadline is None:
            yield Breach("lease", end.at, f"{source} has failed by a deadline that it does not have")
            continue
        ran = [found for copy in story.mirrors.get(owner, ()) if (found := _ran_until_its_deadline(copy)) is not None]
        text = f"{source} (uid {source.uid}) has failed by its deadline of {deadline} s after {max(ran, default=0)} s"
        yield Breach("lease", end.at, text) if ran and max(ran) < deadline - _WHOLE_SECONDS else None


def capacity_is_held(story: Story) -> Verdicts:
    """D21: no worker is given more than its capacity, by the management cluster's own order of writes.

    What sources have left there and still runs takes places, too.
    """
    limits: dict[str, int] = {}
    places: dict[tuple[str, str], str] = {}
    left: dict[tuple[str, str], list[Life]] = {}
    for version in story.management:
        name = version.key.partition("/")[2]
        if version.resource == "secrets":
            limits.pop(name, None)
            if version.body is not None and (text := annotation(version.body, names.CAPACITY)).isdecimal():
                limits[name] = int(text)
        elif version.resource in KINDS:
            worker, source = _occupies(story, version), (version.resource, version.key)
            before, _ = places.pop(source, ""), left.pop(source, None)
            if worker:
                places[source] = worker
                left[source] = _left_by(story, version)
            if worker == before or worker not in limits:
                continue
            beside = (one for key, copies in left.items() if key != source for one in copies)
            others = sum(one.cluster == worker and _runs_around(story, one, version.at) for one in beside)
            count, limit = Counter(places.values())[worker] + others, limits[worker]
            text = f"{version.resource} {version.key} is the {count}th on {worker}, which takes {limit}"
            yield Breach("capacity", version.at, text) if count > limit else None


def logs_are_clean(story: Story) -> Verdicts:
    """Whatever happens, a manager has an answer to it."""
    for one in story.complaints:
        yield Breach("log", one.at, f"{one.manager} logged: {one.text}")


def all_have_ended(story: Story) -> Verdicts:
    """D8: once all is healed and resumed, every source ends. A campaign that was broken off has not shown it."""
    if "settled" not in story.phases:
        yield Breach("ended", float("inf"), "the campaign did not come to its end")
        return
    at = story.phases["settled"]
    for source in story.sources.values():
        if not source.exists_at(at):
            continue
        content = source.content_at(at)
        waits, where = annotation(content, names.WAITING_BECAUSE), placed_on(content) or "no worker"
        text = f"{source} (uid {source.uid}) on {where} has not ended: {waits}"
        yield Breach("ended", at, text) if source.kind.end(content) is None else None


def _taken_back(kind: MirroredKind, before: Json, after: Json) -> str:
    old, new = before.get("status") or {}, after.get("status") or {}
    for said in filter(None, (*kind.ends, *kind.ends.values())):
        if condition(before, said) and not condition(after, said):
            return f"{said} was taken back"
    floors = {"succeeded": least_succeeded(after, old), "failed": old.get("failed", 0)}
    for counter, floor in floors.items():
        if new.get(counter, 0) < floor:
            return f"{counter} went from {old[counter]} to {new.get(counter, 0)}"
    for field in ("completedIndexes", "failedIndexes"):
        if lost := indexes_of(after, old.get(field, "")) - indexes(new.get(field, "")):
            return f"{field} lost {sorted(lost)[:5]}"
    if old.get("completionTime") and new.get("completionTime") != old["completionTime"]:
        return f"completionTime went from {old['completionTime']} to {new.get('completionTime')}"
    if kind.end(before) and new.get("startTime") != old.get("startTime"):
        return "startTime changed after the end"
    return ""


@dataclass(frozen=True, slots=True)
class End:
    """How a source has ended, in the first version that says so."""

    at: float
    verdict: Json
    body: Json
    before: Json
    """The version before, or the same."""


def first_end(source: Life) -> End | None:
    before: Json | None = None
    for at, body in source.bodies:
        if (verdict := source.kind.end(body)) is not None:
            return End(at, verdict, body, body if before is None else before)
        before = body
    return None


def _ran_until_its_deadline(copy: Life) -> float | None:
    """How long a copy had run when a deadline ended it; None where it does not say so."""
    for _, body in copy.bodies:
        started = (body.get("status") or {}).get("startTime")
        for kind in filter(None, (*copy.kind.ends, *copy.kind.ends.values())):
            said = condition(body, kind) or {}
            if started and said.get("reason") == "DeadlineExceeded" and "lastTransitionTime" in said:
                ended = datetime.fromisoformat(said["lastTransitionTime"])
                return (ended - datetime.fromisoformat(started)).total_seconds()
    return None


def ended_so(copy: Life, end: End, by: float) -> bool:
    """Whether a copy that counts had this end by then, for this reason; what its controller says before will do (D11).

    It counts on the recorded worker; where its source has left it behind, only by being Complete (D14).
    """
    if moves_of(end.body).has_left(copy.cluster, copy.uid):
        counts = end.verdict["type"] == copy.kind.complete
    else:
        was_left = moves_of(end.before).has_left(copy.cluster, copy.uid) and end.verdict["type"] == copy.kind.complete
        counts = was_left or placed_on(end.body) == copy.cluster
    if not counts:
        return False
    for when, body in copy.bodies:
        if when > by:
            return False
        said = (condition(body, kind) for kind in (end.verdict["type"], copy.kind.ends[end.verdict["type"]]))
        if any(one is not None and one.get("reason", "") == end.verdict.get("reason", "") for one in said):
            return True
    return False


def _vanished(story: Story, copy: Life, end: End) -> bool:
    """Whether the copy that is recorded was gone when its source ended, and no manager had deleted it."""
    if recorded_uid(end.body) not in ("", copy.uid):
        return False
    is_here = copy.cluster == placed_on(end.body) and not copy.is_deleted_by_manager
    return is_here and copy.gone_at is not None and copy.gone_at <= story.known_by(copy.cluster, end.at)


def _left_by(story: Story, version: Version) -> list[Life]:
    """The copies that this version of a source says it has left on workers, but for the one where it is."""
    body, moves = version.body or {}, moves_of(version.body or {})
    copies = story.mirrors.get((version.resource, body["metadata"]["uid"]), ()) if moves.left else ()
    return [one for one in copies if one.cluster != placed_on(body) and moves.may_have_left(one.cluster, one.uid)]


def _runs_around(story: Story, copy: Life, at: float) -> bool:
    """Whether a copy may run then, for sure: before and after."""
    early, late = at - STALE_SECONDS, story.known_by(copy.cluster, at)
    return any(since <= early and until >= late for since, until in copy.runs())


def _occupies(story: Story, version: Version) -> str:
    """The worker on which this version of a source takes a place."""
    body, kind = version.body, KINDS[version.resource]
    if body is None or kind.managed_by(body) != story.opening.managed_by or kind.end(body):
        return ""
    return placed_on(body)
