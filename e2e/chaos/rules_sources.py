"""What must be true of sources: a status never goes back, an end is a copy's, capacity is held, all end. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from e2e.chaos.breaches import Breach
from e2e.chaos.history import Json, Version
from e2e.chaos.kinds import KINDS, MirroredKind, condition
from e2e.chaos.story import Life, Story, annotation, placed_on
from mirror.model import names

_NO_COPY_KNOWS = ("MirrorLost",)
"""Reasons that no worker's controller gives: they are ours."""


def never_back(story: Story) -> Iterator[Breach]:
    """D7: what a status has said it does not take back."""
    for source in story.sources.values():
        before: Json | None = None
        for at, body in source.bodies:
            if before is not None and (what := _taken_back(source.kind, before, body)):
                yield Breach("never-back", at, f"{source} (uid {source.uid}): {what}")
                break
            before = body


def ends_are_true(story: Story) -> Iterator[Breach]:
    """D7, D11: a source ends as a copy of it has ended; without one only if its copy had vanished."""
    for owner, source in story.sources.items():
        at, verdict = _first_end(source)
        if verdict is None:
            continue
        text = f"{source} (uid {source.uid}) is {verdict['type']} ({verdict.get('reason', '')})"
        copies = story.mirrors.get(owner, [])
        if verdict.get("reason") in _NO_COPY_KNOWS:
            if not any(_vanished(story, copy, at) for copy in copies):
                yield Breach("true-end", at, f"{text}, but no copy of it had vanished")
        elif not any(_ended_so(copy, verdict, story.known_by(copy.cluster, at)) for copy in copies):
            yield Breach("true-end", at, f"{text}, and none of its {len(copies)} copies was")


def leases_are_no_verdict(story: Story) -> Iterator[Breach]:
    """D14: the deadline of a fence is not the user's."""
    for source in story.sources.values():
        at, verdict = _first_end(source)
        is_late = verdict is not None and verdict.get("reason") == "DeadlineExceeded"
        if is_late and "activeDeadlineSeconds" not in source.content_at(at)["spec"]:
            yield Breach("lease", at, f"{source} has failed by a deadline that it does not have")


def capacity_is_held(story: Story) -> Iterator[Breach]:
    """D21: no worker is given more than its capacity, by the management cluster's own order of writes."""
    limits: dict[str, int] = {}
    places: dict[tuple[str, str], str] = {}
    for version in story.management:
        name = version.key.partition("/")[2]
        if version.resource == "secrets":
            limits.pop(name, None)
            if version.body is not None and (text := annotation(version.body, names.CAPACITY)).isdecimal():
                limits[name] = int(text)
        elif version.resource in KINDS:
            worker, source = _occupies(story, version), (version.resource, version.key)
            before = places.pop(source, "")
            if worker:
                places[source] = worker
            count = Counter(places.values())[worker]
            if worker and worker != before and count > limits.get(worker, count):
                text = f"{version.resource} {version.key} is the {count}th on {worker}, which takes {limits[worker]}"
                yield Breach("capacity", version.at, text)


def logs_are_clean(story: Story) -> Iterator[Breach]:
    """Whatever happens, a manager has an answer to it."""
    for one in story.complaints:
        yield Breach("log", one.at, f"{one.manager} logged: {one.text}")


def all_have_ended(story: Story) -> Iterator[Breach]:
    """D8: once all is healed and resumed, every source ends. A campaign that was broken off has not shown it."""
    if "settled" not in story.phases:
        yield Breach("ended", float("inf"), "the campaign did not come to its end")
        return
    at = story.phases["settled"]
    for source in story.sources.values():
        if source.exists_at(at) and source.kind.end(source.content_at(at)) is None:
            waits = annotation(source.content_at(at), names.WAITING_BECAUSE)
            where = placed_on(source.content_at(at)) or "no worker"
            yield Breach("ended", at, f"{source} (uid {source.uid}) on {where} has not ended: {waits}")


def _taken_back(kind: MirroredKind, before: Json, after: Json) -> str:
    old, new = before.get("status") or {}, after.get("status") or {}
    for said in filter(None, (*kind.ends, *kind.ends.values())):
        if condition(before, said) and not condition(after, said):
            return f"{said} was taken back"
    for counter in ("succeeded", "failed"):
        if new.get(counter, 0) < old.get(counter, 0):
            return f"{counter} went from {old[counter]} to {new.get(counter, 0)}"
    for field in ("completedIndexes", "failedIndexes"):
        if lost := _indexes(old.get(field, "")) - _indexes(new.get(field, "")):
            return f"{field} lost {sorted(lost)[:5]}"
    if old.get("completionTime") and new.get("completionTime") != old["completionTime"]:
        return f"completionTime went from {old['completionTime']} to {new.get('completionTime')}"
    if kind.end(before) and new.get("startTime") != old.get("startTime"):
        return "startTime changed after the end"
    return ""


def _indexes(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _first_end(source: Life) -> tuple[float, Json | None]:
    return next(((at, found) for at, body in source.bodies if (found := source.kind.end(body))), (0.0, None))


def _ended_so(copy: Life, verdict: Json, by: float) -> bool:
    """Whether a copy had this end by then, for this reason: what its controller says before counts as well (D11)."""
    for when, body in copy.bodies:
        if when > by:
            return False
        said = (condition(body, kind) for kind in (verdict["type"], copy.kind.ends[verdict["type"]]))
        if any(one is not None and one.get("reason", "") == verdict.get("reason", "") for one in said):
            return True
    return False


def _vanished(story: Story, copy: Life, at: float) -> bool:
    """Whether a copy was gone by then, or its worker had forgotten things."""
    return copy.gone_at is not None and (
        copy.gone_at <= story.known_by(copy.cluster, at) or story.was_restored(copy, by=at)
    )


def _occupies(story: Story, version: Version) -> str:
    """The worker on which this version of a source takes a place."""
    body, kind = version.body, KINDS[version.resource]
    if body is None or kind.managed_by(body) != story.opening.managed_by or kind.end(body):
        return ""
    return placed_on(body)
