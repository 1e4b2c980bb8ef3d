"""Requests with one thing in it very often: four times as much takes about four times as long, not sixteen times.

Counted in CPU time of this thread, of which the better of two tries counts, and with room for a machine that is busy.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from tests.embedded.apiserver.asking import Asking

Json: TypeAlias = dict[str, Any]

JOBS = "/apis/batch/v1/namespaces/default/jobs"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/e.com/v1/namespaces/default/things"
_NOT_WORTH_SECONDS = 0.05
_MOST_TIMES = 9.0


def _job(**spec: Any) -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **spec}
    return {"metadata": {"generateName": "j-"}, "spec": {"template": {"spec": pod}}}


def _container(**fields: Any) -> Json:
    return _job(volumes=[{"name": "v", "emptyDir": {}}], containers=[{"name": "c", "image": "i", **fields}])


def _thing(**fields: Any) -> Json:
    return {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"generateName": "t-"}, **fields}


def _ports(count: int) -> list[Json]:
    return [{"containerPort": 80, "hostPort": number + 1} for number in range(count)]


def _spread(count: int) -> list[Json]:
    return [
        {"maxSkew": 1, "topologyKey": f"k{number}", "whenUnsatisfiable": "DoNotSchedule"} for number in range(count)
    ]


MANY: Mapping[str, tuple[str, Callable[[int], Json]]] = {
    "spread constraints": (JOBS, lambda count: _job(topologySpreadConstraints=_spread(count))),
    "ports of the node": (JOBS, lambda count: _container(ports=_ports(count))),
    "mounts beside devices": (
        JOBS,
        lambda count: _container(
            volumeMounts=[{"name": "v", "mountPath": f"/m{number}"} for number in range(count)],
            volumeDevices=[{"name": "v", "devicePath": f"/d{number}"} for number in range(count)],
        ),
    ),
    "files of a volume": (
        JOBS,
        lambda count: _job(
            volumes=[
                {
                    "name": "v",
                    "configMap": {"name": "c", "items": [{"key": "k", "path": f"p{n}"} for n in range(count)]},
                }
            ]
        ),
    ),
    "values of an enumeration": (THINGS, lambda count: _thing(words=["w999"] * count)),
    "values that are none of an enumeration": (THINGS, lambda count: _thing(words=["none"] * count)),
    "items of a set": (THINGS, lambda count: _thing(set=[f"x{number}" for number in range(count)])),
    "items of a map": (THINGS, lambda count: _thing(map=[{"k": f"x{number}"} for number in range(count)])),
    "violations": (JOBS, lambda count: _job(tolerations=[{"key": "a b", "operator": "Odd"}] * count)),
}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "words": {"type": "array", "items": {"type": "string", "enum": [f"w{number}" for number in range(1000)]}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "map": {
            "type": "array",
            "items": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
    },
}


@pytest.fixture
async def defined() -> Asking:
    asking = Asking()
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "e.com", "scope": "Namespaced", "names": names, "versions": [version]}
    await asking.ok("POST", DEFINITIONS, {"metadata": {"name": "things.e.com"}, "spec": spec})
    return asking


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("what", MANY)
async def test_more_of_a_thing_takes_no_more_than_its_share(defined: Asking, what: str) -> None:
    """Or a request of 3 MiB keeps everybody else waiting for minutes."""
    path, make = MANY[what]
    few, many = [min([await _seconds(defined, path, make(count)) for _ in range(2)]) for count in (500, 2000)]
    assert many < max(_MOST_TIMES * few, _NOT_WORTH_SECONDS), f"{few:.3f} s for 500, {many:.3f} s for 2000"


async def _seconds(asking: Asking, path: str, body: Json) -> float:
    began = time.thread_time()
    await asking.ask("POST", f"{path}?dryRun=All", body)
    return time.thread_time() - began


async def test_a_refusal_tells_a_hundred_causes(defined: Asking) -> None:
    """And how many more there are; what an enumeration allows is cut, too."""
    status, answer = await defined.ask("POST", THINGS, _thing(words=["none"] * 150))
    assert status == 422
    causes = answer["details"]["causes"]
    assert (len(causes), causes[-1]["message"]) == (101, "Too many: 50 more are not told")
    assert causes[0]["message"].endswith('"w99", "… and 900 more"')
    assert len(json.dumps(answer)) < 1 << 19
