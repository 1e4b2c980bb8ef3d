"""How histories are written by hand: of Jobs, at times counted from their beginning, and judged as any kind. Pure.

Used by its neighbours, one for each family of rules, and by ``test_chaos_judge``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from e2e.chaos.history import Json, Opening, Phase, Record, Request, Version
from e2e.chaos.judging import judge
from e2e.chaos.kinds import JOB, MirroredKind
from mirror.model import names

MINE, ORIGIN, USER = "e2e.jobmirror.io/x", "e2e-x", "system:serviceaccount:jobmirror-x:jobmirror"
KEY = "team-a/train"
BASE = 1_000_000.0


class Draft:
    """A history in the making."""

    def __init__(self, *, kind: MirroredKind = JOB) -> None:
        self._kind = kind
        self._opening = Opening(BASE, 7, ORIGIN, MINE, ["east", "west", "north"], [USER])
        self.records: list[Record] = []

    def settings(self, **changes: object) -> None:
        """What the managers' settings say, as in the opening."""
        self._opening = msgspec.structs.replace(self._opening, **changes)

    def put(self, at: float, cluster: str, body: Json | None, *, key: str = KEY, resource: str = "jobs") -> None:
        """An object is stored, or deleted."""
        self.records.append(Version(BASE + at, cluster, resource, int(1000 * at), key, body))

    def add(self, *records: Record) -> None:
        """Records of other kinds."""
        self.records += records

    def delete(self, at: float, cluster: str, *, code: int = 200) -> None:
        """A manager deletes the object there."""
        self.add(wrote(at, "delete", cluster, code=code))
        self.put(at + 0.1, cluster, None)

    def whole(self) -> list[Record]:
        """With its opening and, unless the history has its own, the end of a campaign; Jobs are of the draft's kind."""
        has_phases = any(isinstance(one, Phase) for one in self.records)
        phases = () if has_phases else (phase(90, "settled"), phase(99, "emptied"))
        told = (of_kind(self._kind, one) for one in sorted(self.records, key=lambda one: one.at))
        return [self._opening, *told, *phases]

    def beside(self, other: Draft) -> Draft:
        """The history of both together."""
        both = Draft()
        both.add(*(one for draft in (self, other) for one in draft.whole()[1:] if not isinstance(one, Phase)))
        return both

    def broken(self) -> set[str]:
        """The rules that the judge finds broken."""
        return {breach.rule for breach in judge(self.whole())}


def of_kind(kind: MirroredKind, record: Record) -> Record:
    """A record of Jobs as one of this kind."""
    match record:
        case Request(resource="jobs"):
            return msgspec.structs.replace(record, resource=kind.name)
        case Version(resource="jobs", body=None):
            return msgspec.structs.replace(record, resource=kind.name)
        case Version(resource="jobs", body=body) if body is not None and kind is not JOB:
            ends = dict(zip(JOB.ends, kind.ends, strict=True))
            said = [{**one, "type": ends.get(one["type"], one["type"])} for one in body["status"].get("conditions", ())]
            spec = policy = kind.suspension(bool(body["spec"].get("suspend")))["spec"]
            for name in kind.policy:
                policy = policy[name]
            policy |= {"managedBy": body["spec"]["managedBy"]} if "managedBy" in body["spec"] else {}
            now = {**body, "spec": spec, "status": {**body["status"], "conditions": said}}
            return msgspec.structs.replace(record, resource=kind.name, body=now)
    return record


def phase(at: float, name: str) -> Phase:
    """A step of the campaign."""
    return Phase(BASE + at, name)


def wrote(at: float, verb: str, cluster: str, *, key: str = KEY, code: int = 200, process: str = "") -> Request:
    """A manager's request."""
    return Request(BASE + at + 0.1, BASE + at, cluster, USER, verb, "", key, code, process=process)


def stamp(at: float) -> str:
    """This time of a history, as statuses have times."""
    return f"{datetime.fromtimestamp(BASE + at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def said_between(draft: Draft, since: float, until: float) -> Iterator[Json]:
    """What the source says then."""
    versions = (one for one in draft.records if isinstance(one, Version) and one.cluster == "management")
    for one in versions:
        if one.resource == "jobs" and one.body is not None and BASE + since <= one.at < BASE + until:
            yield one.body


# -- objects -----------------------------------------------------------------------------------------------------------


def true(kind: str, reason: str = "", message: str = "") -> Json:
    """A condition."""
    return {"type": kind, "status": "True", "reason": reason, "message": message}


def source(*conditions: Json, uid: str = "s", annotations: Json | None = None, **status: object) -> Json:
    """A source with these conditions."""
    return {
        "metadata": {"name": "train", "namespace": "team-a", "uid": uid, "annotations": annotations or {}},
        "spec": {"managedBy": MINE},
        "status": {**status, "conditions": list(conditions)},
    }


def mirror(
    *conditions: Json, uid: str, of: str = "s", suspend: bool = False, annotations: Json | None = None, **status: object
) -> Json:
    """A copy with these conditions."""
    labels = {names.ORIGIN: ORIGIN, names.SOURCE_UID: of}
    metadata = {"name": "train", "namespace": "team-a", "uid": uid, "labels": labels, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"suspend": suspend}, "status": {**status, "conditions": list(conditions)}}


def stranger(uid: str = "f") -> Json:
    """Somebody else's Job."""
    return {"metadata": {"name": "train", "namespace": "team-a", "uid": uid}, "spec": {}, "status": {}}


def specified(body: Json, **spec: object) -> Json:
    """The same, with more in its spec."""
    return {**body, "spec": {**body["spec"], **spec}}


def going(body: Json) -> Json:
    """The same, being deleted."""
    return {**body, "metadata": {**body["metadata"], "deletionTimestamp": "2026-11-28T00:00:00Z"}}


def registered(**annotations: str) -> Json:
    """The Secret of a worker."""
    return {"metadata": {"uid": "k", "annotations": annotations}}


def on(worker: str) -> Json:
    """It is recorded there."""
    return true(names.PLACED, "Placed", worker)


def mirrored(uid: str) -> Json:
    """Its copy is recorded."""
    return true(names.MIRRORED, "MirrorCreated", uid)


def move(text: str, reason: str = "WorkerLost") -> Json:
    """It was moved, as this says."""
    return true(names.MOVED, reason, f"move {text}")


COMPLETE = true("Complete", "CompletionsReached")
FAILED = true("Failed", "BackoffLimitExceeded")
LATE = true("Failed", "DeadlineExceeded")
LOST = true("Failed", "MirrorLost")
DRAINED = true("Suspended", "WorkerDrained")


# -- lives -------------------------------------------------------------------------------------------------------------


def good_life(draft: Draft, *, until: float = 40) -> None:
    """It is created, placed on east, runs there and ends, and is deleted after the campaign."""
    draft.put(1, "management", source())
    draft.put(2, "management", source(on("east")))
    draft.put(2.1, "east", mirror(uid="m"))
    draft.put(3, "management", source(on("east"), mirrored("m"), active=1))
    draft.put(until, "east", mirror(COMPLETE, uid="m", succeeded=1))
    draft.put(until + 0.1, "management", source(on("east"), mirrored("m"), COMPLETE, succeeded=1, completionTime="t"))
    deleted_after_all(draft, "east")


def runs_on_east(draft: Draft, *, annotations: Json | None = None) -> None:
    """It is created, placed on east and runs there, as copy ``m``; how that ends is for others to write."""
    draft.put(1, "management", source(annotations=annotations))
    draft.put(2, "management", source(on("east"), annotations=annotations))
    draft.put(2.1, "east", mirror(uid="m"))
    draft.put(3, "management", source(on("east"), mirrored("m"), annotations=annotations))


def ends_on(draft: Draft, worker: str, uid: str, *said: Json, at: float, annotations: Json | None = None) -> None:
    """The copy there is Complete, and so is its source, which is deleted after the campaign."""
    draft.put(at, worker, mirror(COMPLETE, uid=uid))
    draft.put(at + 0.1, "management", source(on(worker), mirrored(uid), *said, COMPLETE, annotations=annotations))
    deleted_after_all(draft, worker)


def deleted_after_all(draft: Draft, *workers: str) -> None:
    """Its user deletes it, and a manager its copies."""
    draft.put(95, "management", None)
    for worker in workers:
        draft.delete(95.9, worker)


def moved(
    draft: Draft, *, is_counted: bool = True, annotations: Json | None = None, promise: str = "", removes: float = 40
) -> None:
    """It is moved from east to west, while its copy on east runs on; a manager deletes that later."""
    left = f"; left behind: east (uid m{promise})" if is_counted else ""
    said = move(f"1, from east to west{left}")
    runs_on_east(draft, annotations=annotations)
    draft.put(20, "management", source(on("west"), said, annotations=annotations))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.delete(removes, "east")
    ends_on(draft, "west", "n", said, at=50, annotations=annotations)


def moved_source() -> Json:
    """The source of ``moved`` at its end, when its user has taken its policy away."""
    left = move("1, from east to west; left behind: east (uid m)")
    return source(on("west"), mirrored("n"), left, COMPLETE)
