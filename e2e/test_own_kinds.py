"""A kind of one's own beside JobSet, with nothing but docs/kinds.md: an operator enables both, a user lives with them.

On fresh real control planes with RBAC and the shipped permissions. JobSets are run by their own controller,
Simulations, which docs/kinds.md declares, by a player; a stub of a kubelet answers for logs.
"""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from e2e import operators, shipped, simulations
from e2e.commands import Said, contexts, operator_says
from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import MANAGEMENT, WORKER
from e2e.definitions import defined
from e2e.jobs import Scene, read_or_none, until
from e2e.kubelets import stub_kubelet, with_kubelet
from e2e.lives import JOB_SET, Lives
from e2e.manager import Identity, ManagerProcess
from e2e.operator_table import JOBSET, JOBSETS
from e2e.people import WRITE, Person, may_read, person, until_allowed
from e2e.serving import serving_manager
from e2e.simulations import LABEL, SIMULATIONS, simulation
from mirror.kube.resources import Resource
from mirror.model import names
from tests.documents.commands import indented

TEAM = "team-a"
IDENTITY = Identity("jobmirror-system", names.DEFAULT_MANAGED_BY, "home")
OWN = "Simulation"
GRANTED = "kind Simulation: served as v1beta1, all required permissions granted"
OF_KIND: dict[str, tuple[Resource, str, Json, Json]] = {
    "jobset": (JOBSETS, JOB_SET.pods_label, {"suspend": True}, {"suspend": False}),
    "simulation": (SIMULATIONS, LABEL, {"paused": True}, {"paused": False}),
}
"""As users name it: what it is, how its pods are found, and what suspends and resumes one."""


@dataclass(frozen=True, slots=True)
class Town:
    """What is there once the operator has enabled both kinds."""

    manager: ManagerProcess
    scene: Scene
    operator: Path
    """A kubeconfig with a context for each cluster."""
    ann: Person

    async def operator_says(self, *arguments: str) -> Said:
        return await operator_says(self.manager, self.operator, *arguments)


def documented() -> Json:
    """The settings of the document's first block: JobSet, and the kind of one's own."""
    kinds = yaml.safe_load(indented("docs/kinds.md", "kinds:"))["kinds"]
    return {"kinds": [one for one in kinds if one == "JobSet" or (isinstance(one, dict) and one["kind"] == OWN)]}


def copied(manager: ManagerProcess) -> list[Json]:
    """The permissions on the management cluster: a copy of JobSet's file with another group and resource."""
    text = json.dumps(shipped.read("kinds/management-jobset", namespace=manager.namespace))
    found: list[Json] = json.loads(text.replace(JOBSETS.group, SIMULATIONS.group).replace("jobset", "simulation"))
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def town(binaries: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    """The operator's story, from the settings to a check that finds nothing."""
    desk = tmp_path_factory.mktemp("desk")
    (desk / "mirror.yaml").write_text(yaml.safe_dump(documented()))
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(Cluster.start("hub", MANAGEMENT))
        east = await stack.enter_async_context(Cluster.start("own-east", WORKER))
        await with_kubelet(east, await stack.enter_async_context(stub_kubelet()))
        manager = await stack.enter_async_context(serving_manager(hub, {}, identity=IDENTITY, settings=documented()))
        kubeconfig = contexts(desk / "kubeconfig", {"hub": hub, "east": east})
        scene = Scene(hub, {"east": east}, TEAM)
        stack.push_async_callback(scene.close)
        await scene.make_namespace()
        await scene.make_namespace("east")
        ann = await person(hub, TEAM, "ann", manager, may_view=True)
        found = Town(manager, scene, kubeconfig, ann)

        await check_settings(found, desk / "mirror.yaml")
        for one in copied(manager):
            await shipped.put(scene.client, one)
        await until_allowed(scene.client, "", shipped.user_of(manager.namespace), kind=SIMULATIONS)
        clients = (scene.client, scene.client_of("east"))
        await stack.enter_async_context(defined(clients, [simulations.definition()]))
        await stack.enter_async_context(operators.running(hub, east, operators=(JOBSET,)))
        await stack.enter_async_context(simulations.played(east))
        await add_worker(found)
        for kind in (JOBSETS, SIMULATIONS):
            await may_read(scene.client, ann, "ann", kind, verbs=WRITE)
        yield found


async def check_settings(town: Town, settings: Path) -> None:
    """Before anything is there: the settings are understood, and what is missing is named."""
    administrator = Person(str(town.operator), TEAM, town.manager.namespace)
    checked = await administrator.says("check-config", str(settings))
    assert checked.code == 0, checked
    listed = await town.operator_says("kinds", f"--config={settings}")
    (row,) = (line.split() for line in listed.output.splitlines() if line.startswith(OWN))
    assert (row[1], row[2], row[-1]) == ("simulations.v1beta1.example.com", "spec.managedBy", "yes")
    checked = await town.operator_says("kinds", "--check")
    assert "CustomResourceDefinition simulations.example.com is missing" in checked.output, checked


async def add_worker(town: Town) -> None:
    """One command grants what both kinds need there; then nothing is missing anywhere."""
    kinds = ("--kinds", "JobSet,simulations.example.com", "--logs")
    loopback = ("--allow", "loopback")
    added = await town.operator_says("worker", "add", "east", "--context=east", *kinds, *loopback)
    assert added.code == 0, added
    assert "✗" not in added.output, added

    def is_granted(said: Said) -> bool:
        return said.code == 0 and said.output.count(GRANTED) == 2

    await until(lambda: town.operator_says("kinds", "--check", *loopback), is_granted)


async def seen(ann: Person, word: str, name: str = "train") -> Json:
    """What ``kubectl mirror get KIND NAME`` says of one; nothing where it is not there."""
    said = await ann.says("get", word, name, "-o", "json", "-n", TEAM)
    found: list[Json] = json.loads(said.output)["items"] if said.output else []
    return found[0] if found else {}


async def until_seen(ann: Person, word: str, state: str, name: str = "train") -> Json:
    return await until(partial(seen, ann, word, name), lambda found: found.get("state") == state)


async def types(ann: Person, *arguments: str) -> None:
    """``kubectl …``, which has to go well."""
    said = await ann.says(*arguments, "-n", TEAM, under="")
    assert said.code == 0, said


async def submit(ann: Person, folder: Path, body: Json) -> None:
    file = folder / "object.yaml"
    file.write_text(yaml.safe_dump(body))
    await types(ann, "create", "-f", str(file))


@pytest.mark.parametrize("word", OF_KIND)
async def test_a_user_submits_reads_suspends_resumes_and_deletes_one(town: Town, word: str, tmp_path: Path) -> None:
    """By commands alone; its pods and logs are on the worker, and nothing of it stays there."""
    ann, there = town.ann, town.scene.client_of("east")
    resource, label, held, released = OF_KIND[word]
    named, path = f"{word}/train", resource.path(TEAM, "train")
    bodies = {
        "jobset": Lives(town.scene, JOB_SET, town.manager.managed_by).body("train", run_for="never"),
        "simulation": simulation("train", town.manager.managed_by),
    }

    async def log() -> str:
        said = await ann.says("logs", named, "-n", TEAM)
        return said.output if said.code == 0 else ""

    async def pods() -> list[str]:
        listed = await there.list(f"/api/v1/namespaces/{TEAM}/pods", labelSelector=f"{label}=train")
        return sorted(one["metadata"]["name"] for one in listed)

    await submit(ann, tmp_path, bodies[word])
    assert (await until_seen(ann, word, "Running"))["worker"] == "east"
    assert "train" in await ann.mirror("get")
    listed = json.loads(await ann.mirror("pods", named, "-o", "json"))["items"]
    assert sorted(one["name"] for one in listed) == await pods() != []
    assert "log of train-" in await until(log)
    assert "spec.managedBy" in await ann.mirror("diff", named)
    assert "Placed" in await ann.mirror("explain", named)

    for spec, state in ((held, "Suspended"), (released, "Running")):
        await types(ann, "patch", word, "train", "--type=merge", "-p", json.dumps({"spec": spec}))
        await until_seen(ann, word, state)
        await until(pods, bool if state == "Running" else operator.not_)
    assert "log of train-" in await until(log)

    await types(ann, "delete", word, "train")
    await until(lambda: read_or_none(there, path), lambda found: found is None)
    assert not await seen(ann, word)


async def test_one_that_ends_tells_how(town: Town, tmp_path: Path) -> None:
    """By the words of its entry: it has succeeded, is held, or its mirror is lost."""
    ann, there = town.ann, town.scene.client_of("east")
    await submit(ann, tmp_path, simulation("soon", town.manager.managed_by, run_for="300ms"))
    await until_seen(ann, "simulation", "Complete", "soon")

    await submit(ann, tmp_path, simulation("held", town.manager.managed_by, paused=True))
    found = await until_seen(ann, "simulation", "Suspended", "held")
    assert found["because"] == "spec.paused is true"
    assert await read_or_none(there, SIMULATIONS.path(TEAM, "held")) is None

    await submit(ann, tmp_path, simulation("lost", town.manager.managed_by))
    await until_seen(ann, "simulation", "Running", "lost")
    await there.delete(SIMULATIONS.path(TEAM, "lost"))
    await until_seen(ann, "simulation", "Failed", "lost")
    source = await town.scene.client.get(SIMULATIONS.path(TEAM, "lost"))
    assert source["status"]["phase"] == "Lost"
    await asyncio.gather(*(town.scene.client.delete(SIMULATIONS.path(TEAM, one)) for one in ("soon", "held", "lost")))
