"""What ``mirror worker`` does where a second kind is mirrored beside Jobs, under the same names (D24)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.drills import DRILLS, KINDS, definition, drill
from test_cli_worker import HOME, RBAC, Clusters, clusters, place
from test_cli_worker_drain import left_on, mirror, registered, stored

from mirror.cli.worker import drain
from mirror.cli.worker.operations.overview import overview
from mirror.kinds import registry
from mirror.kinds.permissions import MIRROR_VERBS
from mirror.model import names
from mirror.planes.api import Api

__all__ = ["clusters"]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REJECTED = "a Job would be rejected in default: Drill:"
END = {"type": "Succeeded", "status": "True", "reason": "", "lastTransitionTime": "2026-11-22T10:01:00Z"}
PLACED = {"type": names.PLACED, "status": "True", "message": "east", "reason": "Placed"}


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has Drills, too."""
    monkeypatch.setattr(registry, "BUILT_IN", KINDS)


async def put(api: Api, name: str, *conditions: dict[str, str], labels: dict[str, str] | None = None) -> dict[str, Any]:
    """A Drill with these conditions."""
    body = drill(name)
    body["metadata"]["labels"] = labels or {}
    made = await api.create(DRILLS.path("default"), body)
    if conditions:
        await api.merge(DRILLS.path("default", name, "status"), {"status": {"conditions": list(conditions)}})
    return made


async def drills_on(api: Api) -> set[str]:
    return {one["metadata"]["name"] for one in await api.list(DRILLS.path())}


async def mirrored(clusters: Clusters, name: str, *conditions: dict[str, str]) -> None:
    """A Drill whose end is stored, and its mirror with these conditions."""
    source = await put(clusters.management.api, name, PLACED, END)
    origin = (await clusters.management.api.get("/api/v1/namespaces/kube-system"))["metadata"]["uid"]
    labels = {names.ORIGIN: origin, names.SOURCE_UID: source["metadata"]["uid"]}
    await put(clusters.east.api, name, *conditions, labels=labels)


async def test_a_drain_waits_for_every_kind(clusters: Clusters, both: None) -> None:
    """A Job and a Drill of one name are two; a kind that is not the first is named."""
    await clusters.management.api.create(DEFINITIONS, definition())
    await registered(clusters)
    await place(clusters.management.api, "train")
    await put(clusters.management.api, "train", PLACED)
    await put(clusters.management.api, "over", PLACED, END)
    with pytest.raises(
        drain.Failure, match=r"^timed out: 2 Jobs still running \(default/train, Drill default/train\);"
    ):
        await drain.drain(clusters.where, "east", timeout_seconds=0)

    async with drain.clusters.home(clusters.where) as home:
        (row,) = await overview(home)
    assert (row.name, row.jobs) == ("east", 2)


async def test_a_worker_with_a_drill_is_not_removed(clusters: Clusters, both: None) -> None:
    """Unless it is forced, as with a Job."""
    await clusters.management.api.create(DEFINITIONS, definition())
    await registered(clusters)
    await put(clusters.management.api, "train", PLACED)
    with pytest.raises(drain.ClusterError, match=r"1 unfinished Jobs are on worker east \(Drill default/train\)"):
        await drain.remove(clusters.where, "east", drain.Removal())


async def test_clean_up_deletes_finished_mirrors_of_every_kind(
    clusters: Clusters, both: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each by its own end: a Drill that goes on is left, though the Job of its name is over, and the reverse."""
    for plane in (clusters.management, clusters.east):
        await plane.api.create(DEFINITIONS, definition())
    await registered(clusters)
    for name in ("done", "half"):
        await stored(clusters, name)
        await mirror(clusters, name)
    await mirrored(clusters, "done", END)
    await mirrored(clusters, "half")
    capsys.readouterr()
    await drain.remove(clusters.where, "east", drain.Removal(is_forced=True, worker_context="east"))

    assert (await left_on(clusters), await drills_on(clusters.east.api)) == (set(), {"half"})
    printed = capsys.readouterr()
    assert "✓ 3 mirrors deleted\n" in printed.out
    assert "! not deleted: Drill default/half: it has not ended, though its source has\n" in printed.err
    assert "! 1 mirror left on worker east: Drill default/half\n" in printed.err


@pytest.mark.slow
async def test_a_kind_that_no_cluster_serves_is_nothing(
    clusters: Clusters, both: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its CRD is not there: there are no such objects, and the rest is done."""
    await registered(clusters)
    await stored(clusters, "done")
    await mirror(clusters, "done")
    await drain.drain(clusters.where, "east", timeout_seconds=20)

    assert await left_on(clusters) == set()
    assert "✓ 1 mirror deleted\n" in capsys.readouterr().out


@pytest.mark.slow
async def test_the_check_tries_the_kinds_that_are_usable_there(clusters: Clusters, both: None) -> None:
    """What a kind lacks is a finding of its own; a worker without it runs Jobs as well as before."""
    await clusters.management.api.create(DEFINITIONS, definition())
    await registered(clusters)
    await place(clusters.management.api, "train")
    assert (await clusters.check())["namespaces"] == ("ok", "Jobs can be created in default")

    await put(clusters.management.api, "train")
    found = await clusters.check()
    assert found["namespaces"] == ("ok", "Jobs can be created in default")
    assert found["kind Drill"][0] == "warn"
    rules = [{"apiGroups": [DRILLS.group], "resources": [DRILLS.plural], "verbs": [*MIRROR_VERBS]}]
    await clusters.east.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": "drills"}, "rules": rules})
    role = {"apiGroup": RBAC.split("/")[2], "kind": "ClusterRole", "name": "drills"}
    account = {"kind": "ServiceAccount", "name": "jobmirror", "namespace": HOME}
    binding = {"metadata": {"name": "drills"}, "roleRef": role, "subjects": [account]}
    await clusters.east.api.create(f"{RBAC}/clusterrolebindings", binding)
    assert (await clusters.check())["kind Drill"][1].startswith(
        "not served: CustomResourceDefinition drills.example.com"
    )
    strict = definition()
    schema = strict["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] |= {"required": ["colour"]}
    await clusters.east.api.create(DEFINITIONS, strict)
    found = await clusters.check()
    assert found["kind Drill"] == ("ok", "served as v1, all required permissions granted")
    verdict, text = found["namespaces"]
    assert (verdict, text.startswith(REJECTED), "spec.colour" in text) == ("fail", True, True)
