"""Sources of every kind that is built in, with all that follows, is left out or is the worker's own, and changes of it.

For tests that go through the table of kinds: of an entry ``Whole`` makes a spec, from its sample in ``config/samples``,
that has something at each path of the entry; ``values_of`` are two values that its definition takes there.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from mirror.kinds.declared.choosing import built_in
from mirror.model.field_paths import FieldPath, Place, at, put
from mirror.settings.kinds import KindEntry

Json = Any

SAMPLES = Path(__file__).parents[2] / "config/samples/kinds"
_ROLES = {
    "TFJob": ("tfReplicaSpecs", ("Chief", "Master", "Worker", "PS", "Evaluator")),
    "PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker")),
    "XGBoostJob": ("xgbReplicaSpecs", ("Master", "Worker")),
    "PaddleJob": ("paddleReplicaSpecs", ("Master", "Worker")),
}
_METRICS = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
_AUTOSCALED = {"metrics": _METRICS, "enableInTreeAutoscaling": True}
"""What asks for the worker's autoscaler, by the last field of its path."""


def _patches(note: str) -> Json:
    pod = {"metadata": {"annotations": {"example.com/note": note}}}
    jobs = [{"name": "node", "template": {"spec": {"template": pod}}}]
    return [{"manager": "example.com/a", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}]


def _tolerated(key: str) -> Json:
    return [{"key": key, "operator": "Exists"}]


_VALUES: dict[str, tuple[Json, Json]] = {
    "labels": ({"team": "a"}, {"team": "b"}),
    "annotations": ({"example.com/note": "a"}, {"example.com/note": "b"}),
    "nodeSelector": ({"zone": "a"}, {"zone": "b"}),
    "tolerations": (_tolerated("a"), _tolerated("b")),
    "schedulingGates": ([{"name": "example.com/a"}], [{"name": "example.com/b"}]),
    "coordinator": ({"replicatedJob": "leader"}, {"replicatedJob": "workers"}),
    "activeDeadlineSeconds": (600, 900),
    "backoffLimit": (2, 4),
    "cleanPodPolicy": ("Running", "All"),
    "replicas": (2, 3),
    "minReplicas": (1, 2),
    "maxReplicas": (5, 9),
    "scaleStrategy": ({"workersToDelete": ["a"]}, {"workersToDelete": ["b"]}),
    "idleTimeoutSeconds": (60, 90),
    "jobId": ("a-1", "a-2"),
    "entrypoint": ("python a.py", "python b.py"),
    "serveConfigV2": ("applications: [{name: a}]", "applications: [{name: b}]"),
    "suspend": (False, True),
    "statusMessage": ("one", "another"),
    "runtimePatches": (_patches("a"), _patches("b")),
    "managedBy": ("example.com/a", "example.com/b"),
    "ttlSecondsAfterFinished": (60, 90),
    "podSetInfos": ([{"labels": {"flavor": "a"}}], [{"labels": {"flavor": "b"}}]),
    "time": ("2026-02-03T04:05:06Z", "2026-02-03T04:05:07Z"),
}
"""By the last field of a path."""
_CANCELLED = ("TaskRunCancelled", "TaskRunCancelled")


def values_of(kind: str, path: str) -> tuple[Json, Json]:
    """What is at a path, and something else for it; of elements and keys that a path names, any two texts.

    Raises:
        KeyError: nobody has said what; add it above.
    """
    one = FieldPath.of_text(path)
    if one.value:
        return "a", "b"
    last, _ = one.steps[-1]
    return _CANCELLED if (kind, last) == ("TaskRun", "status") else _VALUES[last]


def entry_of(kind: str) -> KindEntry:
    """Its entry of the table."""
    return built_in()[kind]


def whole(kind: str) -> Json:
    """The spec of its sample, with the first value at each path that follows; it runs, and nobody scales it there."""
    body: Json = {"spec": _sample(kind)}
    entry = entry_of(kind)
    for path in (*entry.carry.always, *entry.carry.suspended):
        if (value := values_of(kind, path)) != _CANCELLED:  # a run that is cancelled is over
            body = with_value(body, path, value[0])
    return body["spec"]


def with_value(body: Json, path: str, value: Json) -> Json:
    """A body with a value at each place of a path; with one more element, or key, such as it names."""
    one = FieldPath.of_text(path)
    place: Place = tuple(name for name, _ in one.steps)
    if one.key:
        return put(body, place, [*(at(body, place) or ()), {one.key: one.value}])
    if one.value:
        return put(body, (*place, one.value.replace("*", "x")), value)
    for place in places(body, path):
        body = put(body, place, value)
    return body


def places(body: Json, path: str) -> list[Place]:
    """Where a path leads to, with parents that are not there yet below the last list on the way."""
    found: list[Place] = [()]
    for name, is_every in FieldPath.of_text(path).steps:
        found = [(*place, name) for place in found]
        if is_every:
            found = [(*place, number) for place in found for number in range(len(at(body, place) or ()))]
    return found


def held(kind: str, spec: Json) -> Json:
    """A spec that is suspended.

    Raises:
        ValueError: the kind cannot be.
    """
    suspend = entry_of(kind).suspend
    if not suspend.path:
        raise ValueError(f"a {kind} cannot be suspended")
    return put({"spec": spec}, tuple(suspend.path.split(".")), suspend.held)["spec"]


def autoscaled(kind: str, spec: Json) -> Json:
    """A spec that asks for an autoscaler on the worker."""
    path = entry_of(kind).autoscaling.path
    return put({"spec": spec}, tuple(path.split(".")), _AUTOSCALED[path.rpartition(".")[2]])["spec"]


def _sample(kind: str) -> Json:
    """The spec of its sample, with every part that the entry names."""
    found = yaml.load((SAMPLES / f"{kind.lower()}.yaml").read_text(), Loader=yaml.CSafeLoader)["spec"]
    if kind in _ROLES:
        field, roles = _ROLES[kind]
        found[field] = {role: copy.deepcopy(found[field]["Worker"]) for role in roles}
    return found
