"""Rounds of Jobs, as an audit log shows them: what one sync sends, for how long, and what it waits for in between.

``bench_jobs trace`` prints them for our Job controller beside kube-controller-manager's. Pure, but for reading the log,
which has to be at the level ``Request``: a pod that is created has no name yet, and its owner is in the body.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby, pairwise
from pathlib import Path

import msgspec

from bench.figures import percentile

ENDED = ("Succeeded", "Failed")
BAR_WIDTH = 50
MILLISECONDS = 1000


class What(StrEnum):
    """What a request of a sync does."""

    CREATE = "pods created"
    STATUS = "status"
    REMOVE = "finalizers removed"


@dataclass(frozen=True, slots=True)
class Sent:
    """One request of a controller; times in seconds, as the API server says."""

    job: str
    what: What
    began: float
    ended: float
    pod: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """Requests of one Job that do the same, with none of another sort in between."""

    what: What
    began: float
    ended: float
    count: int
    at_once: int
    """The most that were under way."""

    @property
    def seconds(self) -> float:
        return self.ended - self.began


@dataclass(frozen=True, slots=True)
class Round:
    """What lies between one creation of pods and the next: pods, a status, finalizers, and mostly a second status."""

    job: str
    steps: Sequence[Step]
    next_began: float
    """When the next round has begun."""

    @property
    def began(self) -> float:
        return self.steps[0].began

    @property
    def seconds(self) -> float:
        return self.next_began - self.began

    @property
    def waited_seconds(self) -> float:
        """How long nothing was under way before the next round."""
        return self.next_began - max(step.ended for step in self.steps)


@dataclass(frozen=True, slots=True)
class Trace:
    """All that the log says of one run."""

    sent: Sequence[Sent]
    ends: Mapping[str, float]
    """When each pod has ended: when that was answered to whoever runs pods."""
    events: Sequence[float]
    """When each write of an event had been read."""


class _User(msgspec.Struct, frozen=True):
    username: str


class _Reference(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    user: _User
    verb: str
    stage: str
    request_received_timestamp: datetime
    stage_timestamp: datetime
    object_ref: _Reference = _Reference()
    request_object: msgspec.Raw = msgspec.Raw(b"null")


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _OwnedMeta(msgspec.Struct, frozen=True, rename="camel"):
    owner_references: tuple[_Named, ...] = ()


class _Phase(msgspec.Struct, frozen=True):
    phase: str = ""


class _Body(msgspec.Struct, frozen=True):
    """As far as any body is looked at."""

    metadata: _OwnedMeta = _OwnedMeta()
    status: _Phase = _Phase()


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_body = msgspec.json.Decoder(_Body).decode


def read(log: Path, offset: int, user: str) -> Trace:
    """What a controller has sent since, and when pods ended meanwhile. Of NonIndexed Jobs only.

    Args:
        offset: where to begin, in bytes.
        user: as whom the controller acts.
    """
    sent: list[Sent] = []
    ends: dict[str, float] = {}
    events: list[float] = []
    with log.open("rb") as lines:
        lines.seek(offset)
        for text in lines:
            line = _decode_line(text)
            if line.stage != "ResponseComplete":
                continue
            if line.user.username == user:
                sent += _sent(line)
                if line.object_ref.resource == "events":
                    events.append(line.request_received_timestamp.timestamp())
            elif line.verb == "patch" and line.object_ref.resource == "pods" and _body(line).status.phase in ENDED:
                ends[line.object_ref.name] = line.stage_timestamp.timestamp()
    return Trace(sorted(sent, key=lambda one: one.began), ends, events)


def _sent(line: _Line) -> Iterator[Sent]:
    """The request of a sync that a line shows, if it is one."""
    about = line.object_ref
    began, ended = line.request_received_timestamp.timestamp(), line.stage_timestamp.timestamp()
    match line.verb, about.resource, about.subresource:
        case "create", "pods", "":
            for owner in _body(line).metadata.owner_references[:1]:
                yield Sent(owner.name, What.CREATE, began, ended)
        case "update", "jobs", "status":
            yield Sent(about.name, What.STATUS, began, ended)
        case "patch", "pods", "":
            yield Sent(about.name.rpartition("-")[0], What.REMOVE, began, ended, about.name)


def _body(line: _Line) -> _Body:
    try:
        return _decode_body(line.request_object)
    except msgspec.ValidationError:
        return _Body()  # a JSON patch, or nothing


def steps(sent: Iterable[Sent]) -> list[Step]:
    """The steps of one Job, whose requests are given in the order in which they began.

    Each status is a step of its own.
    """
    found: list[Step] = []
    for what, group in groupby(sent, key=lambda one: one.what):
        requests = list(group)
        for some in [[one] for one in requests] if what is What.STATUS else [requests]:
            last = max(one.ended for one in some)
            found.append(Step(what, some[0].began, last, len(some), _most_at_once(some)))
    return found


def _most_at_once(sent: Iterable[Sent]) -> int:
    most = now = 0
    # At the same instant ends come first: who waits for an answer is not beside the request that it waited for.
    for _, change in sorted((time, sign) for one in sent for time, sign in ((one.began, 1), (one.ended, -1))):
        now += change
        most = max(most, now)
    return most


def rounds(sent: Iterable[Sent]) -> list[Round]:
    """The whole rounds of all Jobs: those that count pods, and that another one follows."""
    by_job: dict[str, list[Sent]] = defaultdict(list)
    for one in sent:
        by_job[one.job].append(one)
    found: list[Round] = []
    for job, requests in by_job.items():
        all_steps = steps(requests)
        begins = [number for number, step in enumerate(all_steps) if step.what is What.CREATE]
        for begin, end in pairwise(begins):
            candidate = Round(job, all_steps[begin:end], all_steps[end].began)
            if {step.what for step in candidate.steps} == set(What):
                found.append(candidate)
    return found


def figures(trace: Trace) -> dict[str, float]:
    """Medians over all whole rounds, by what is told of a round; times in ms."""
    found = rounds(trace.sent)
    parts = [_parts(one) for one in found]
    medians = {name: round(percentile((part[name] for part in parts if name in part), 0.5), 1) for name in _NAMES}
    last = max((one.ended for one in trace.sent), default=0.0)
    waits = [one.began - trace.ends[one.pod] for one in trace.sent if one.pod in trace.ends]
    return {
        "whole rounds of all Jobs": len(found),
        **medians,
        "rounds with a second status, %": round(100 * sum(_SECOND in part for part in parts) / max(1, len(parts))),
        "a pod's end → its finalizer is removed": round(percentile(waits, 0.5) * MILLISECONDS, 1),
        "Jobs in a sync at once, at most": _most_at_once(_syncs(trace.sent)),
        "events sent before the last Job's end": sum(time < last for time in trace.events),
    }


_SECOND = "second status"
_NAMES = (
    "pods created",
    "at most at once",
    "all pods are created",
    "until the status is sent",
    "status",
    "until the first finalizer is removed",
    "finalizers removed",
    "of these at most at once",
    "all finalizers are removed",
    _SECOND,
    "until the next round",
    "whole round",
)


def _parts(one: Round) -> dict[str, float]:
    """A round by the names of its parts, in ms."""
    created = one.steps[0]
    status = next(step for step in one.steps if step.what is What.STATUS)
    removed = next(step for step in one.steps if step.what is What.REMOVE)
    second = next((step for step in one.steps if step.what is What.STATUS and step.began >= removed.began), None)
    values = (
        created.count,
        created.at_once,
        created.seconds * MILLISECONDS,
        (status.began - created.ended) * MILLISECONDS,
        status.seconds * MILLISECONDS,
        (removed.began - status.ended) * MILLISECONDS,
        removed.count,
        removed.at_once,
        removed.seconds * MILLISECONDS,
        second.seconds * MILLISECONDS if second is not None else 0.0,
        one.waited_seconds * MILLISECONDS,
        one.seconds * MILLISECONDS,
    )
    parts = dict(zip(_NAMES, values, strict=True))
    if second is None:
        del parts[_SECOND]
    return parts


def _syncs(sent: Sequence[Sent]) -> list[Sent]:
    """From the first request of each round to its last, as if it was one request."""
    return [Sent(one.job, What.CREATE, one.began, max(step.ended for step in one.steps)) for one in rounds(sent)]


def timeline(one: Round, scale_seconds: float) -> list[str]:
    """A round as lines of text, each step with a bar; ``scale_seconds`` fill the width."""
    lines = []
    for step in one.steps:
        begin = _column(step.began - one.began, scale_seconds)
        bar = " " * begin + "█" * max(1, _column(step.ended - one.began, scale_seconds) - begin)
        count = f"{step.count} {step.what}, {step.at_once} at once" if step.count > 1 else str(step.what)
        lines.append(f"{(step.began - one.began) * MILLISECONDS:7.0f} ms  {bar:{BAR_WIDTH}}  {count}")
    end = _column(one.seconds, scale_seconds)
    lines.append(f"{one.seconds * MILLISECONDS:7.0f} ms  {' ' * end}│ next round")
    return lines


def _column(seconds: float, scale_seconds: float) -> int:
    return round(seconds / scale_seconds * BAR_WIDTH)


def typical(found: Sequence[Round]) -> Round:
    """The round of median length."""
    return sorted(found, key=lambda one: one.seconds)[len(found) // 2]
