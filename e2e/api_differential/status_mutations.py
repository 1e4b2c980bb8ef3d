"""What may be changed in a status, for better or worse: for each rule of §3.2 the field that it speaks of."""

from __future__ import annotations

from random import Random

from e2e.api_differential.job_mutations import INDEX_TEXTS
from e2e.api_differential.steps import ABSENT, Catalogue, Change, Json, find, one_of, put

TIMES = (
    "2026-03-01T11:59:00Z",
    "2026-03-01T12:00:00Z",
    "2026-03-01T13:00:00+01:00",
    "2026-03-01T12:00:00.500Z",
    "2026-03-02T00:00:00Z",
)
ODD_TIMES = ("0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-03-01T12:00:00,25Z", "9999-12-31T23:59:59Z", None)
TYPES = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended", "example.com/Odd")
UIDS = ("u-1", "u-2", "", "u-1", "<&>\u2028")
_AT: Json = {"lastProbeTime": TIMES[0], "lastTransitionTime": TIMES[1]}


def _set_condition(random: Random, job: Json) -> None:
    """One condition, replaced where there is one of its type."""
    statuses = ("True", "True", "True", "False", "Unknown", "")
    one: Json = {"type": random.choice(TYPES), "status": random.choice(statuses)}
    one |= random.choice((_AT, {}, {"lastTransitionTime": None, "reason": "R", "message": "m\n"}))
    others = [other for other in find(job, ("status", "conditions")) or [] if other.get("type") != one["type"]]
    put(job, ("status", "conditions"), random.choice(([one, *others], [*others, one])))


def _drop_condition(random: Random, job: Json) -> None:
    conditions = find(job, ("status", "conditions")) or []
    if conditions:
        gone = random.randrange(len(conditions))
        put(job, ("status", "conditions"), conditions[:gone] + conditions[gone + 1 :])


def _ending(types: tuple[str, ...], **fields: object) -> Change:
    def change(random: Random, job: Json) -> None:
        conditions = [one for one in find(job, ("status", "conditions")) or [] if one.get("type") not in types]
        conditions += [{"type": one, "status": "True", **_AT, "reason": "Because"} for one in types]
        put(job, ("status", "conditions"), conditions)
        for name, value in fields.items():
            put(job, ("status", name), value)
        if not find(job, ("status", "startTime")):
            put(job, ("status", "startTime"), TIMES[0])

    return change


def _uncounted(random: Random, job: Json) -> None:
    lists: Json = {}
    for name in ("succeeded", "failed"):
        if random.random() < 0.6:
            lists[name] = random.choices(UIDS, k=random.choice((0, 1, 1, 2)))
    put(job, ("status", "uncountedTerminatedPods"), random.choice((lists, lists, lists, {}, ABSENT)))


def _metadata(random: Random, job: Json) -> None:
    """DF12: stored by way of the status, too."""
    for name, values in {
        "labels": ({"new": "label"}, {}, {"a b": "c"}),
        "annotations": ({"new": "note"}, {}),
        "finalizers": ([], ["example.com/new"], ["x"]),
        "generation": (99,),
    }.items():
        if random.random() < 0.4:
            put(job, ("metadata", name), random.choice(values))


def _spec(random: Random, job: Json) -> None:
    """DF12: a spec that comes with a status is not looked at, be it good or bad."""
    job["spec"] = random.choice(({}, {**job["spec"], "parallelism": -1}, {**job["spec"], "suspend": True}))


_COUNTS = (ABSENT, -1, 0, 1, 2, 5)

STATUS_MUTATIONS: Catalogue = {
    "active": one_of("status.active", *_COUNTS),
    "ready": one_of("status.ready", *_COUNTS),
    "terminating": one_of("status.terminating", *_COUNTS),
    "succeeded": one_of("status.succeeded", *_COUNTS),
    "failed": one_of("status.failed", *_COUNTS),
    "startTime": one_of("status.startTime", ABSENT, *TIMES, *TIMES, *ODD_TIMES),
    "completionTime": one_of("status.completionTime", ABSENT, *TIMES, *TIMES, *ODD_TIMES),
    "completedIndexes": one_of("status.completedIndexes", ABSENT, *INDEX_TEXTS),
    "failedIndexes": one_of("status.failedIndexes", ABSENT, *INDEX_TEXTS),
    "condition": _set_condition,
    "no condition": _drop_condition,
    "no conditions": one_of("status.conditions", ABSENT, []),
    "uncounted": _uncounted,
    "complete": _ending(("SuccessCriteriaMet", "Complete"), completionTime=TIMES[1], active=0, ready=0),
    "fail": _ending(("FailureTarget", "Failed"), active=0, ready=0, terminating=0),
    "just complete": _ending(("Complete",), completionTime=TIMES[1]),
    "just failed": _ending(("Failed",)),
    "met": _ending(("SuccessCriteriaMet",)),
    "target": _ending(("FailureTarget",)),
    "metadata of it": _metadata,
    "spec of it": _spec,
    "nothing": one_of("status", ABSENT, {}),
}
