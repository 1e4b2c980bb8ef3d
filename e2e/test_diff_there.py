"""``kubectl mirror diff`` says whether workers have what a Job's pods name: THERE, through access (D18, D27).

On real control planes with RBAC. East's account has what ``config/rbac`` ships for it, with ``worker-dependencies``;
west's may mirror Jobs and nothing else. What goes along is looked for on the management
cluster, too. Not here: bounds, and odd answers (``tests/flows/test_access_looking``, ``tests/access``).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest_asyncio
import yaml

from e2e import access
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, job, runs, until
from e2e.manager import ManagerProcess
from e2e.people import RBAC, Person, person
from e2e.serving import serving_manager
from e2e.shipped_life import COPYING, NEEDED, needing
from e2e.troubles.stage import says

ON_EAST = {"worker-selector": "name=east"}
NO_PERMISSION = "the manager has no permission to get {} on worker {}"
Rows = dict[tuple[str, str], tuple[str, str]]
"""Worker and object to state and message."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def serving(management: ControlPlane, east: ControlPlane, west: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """A manager that serves users; on west it may not read what pods name."""
    async with serving_manager(management, {"east": east}, settings=COPYING) as running:
        lesser = await access.account(west, running.namespace)
        await running.register("west", kubeconfig=lesser.read_bytes())
        await until(running.metrics, lambda found: found.value("jobmirror_worker_up") == 2)
        yield running


def naming(
    name: str, managed_by: str, *config_maps: str, secret: str = "", claim: str = "", annotations: Json | None = None
) -> Json:
    """A Job whose pods name these."""
    body = job(name, managed_by, run_for="never", annotations=annotations)
    pod = body["spec"]["template"]["spec"]
    pod["containers"][0]["envFrom"] = [{"configMapRef": {"name": one}} for one in config_maps]
    volumes = [{"name": "s", "secret": {"secretName": secret}}] if secret else []
    volumes += [{"name": "c", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    pod["volumes"] = volumes
    return body


async def allow(scene: Scene, name: str, *rules: tuple[str, str, str]) -> None:
    """More rights of somebody at home: group, resource and verb."""
    listed = [{"apiGroups": [group], "resources": [resource], "verbs": [verb]} for group, resource, verb in rules]
    path = f"/apis/{RBAC}/v1/namespaces/{scene.namespace}"
    await scene.client.create(f"{path}/roles", {"metadata": {"name": f"{name}-more"}, "rules": listed})
    binding = {
        "metadata": {"name": f"{name}-more"},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": f"{name}-more"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": scene.namespace}],
    }
    await scene.client.create(f"{path}/rolebindings", binding)
    for group, resource, verb in rules:
        asked = {"verb": verb, "group": group, "resource": resource, "namespace": scene.namespace}
        user = f"system:serviceaccount:{scene.namespace}:{name}"
        body = {"spec": {"user": user, "resourceAttributes": asked}}
        look = partial(scene.client.create, "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
        await until(look, lambda found: found["status"]["allowed"])


def is_active(found: Json | None) -> bool:
    return ((found or {}).get("status") or {}).get("active") == 1


async def there(person: Person, *what: str) -> Rows:
    """What ``diff`` says of workers."""
    [item] = json.loads(await person.mirror("diff", *what, "-o", "json"))["items"]
    return {(one["worker"], one["object"]): (one["state"], one.get("message", "")) for one in item["onWorker"]}


async def test_of_a_live_job_its_worker_is_asked(
    serving: ManagerProcess, scene: Scene, management: ControlPlane
) -> None:
    """There, missing there, and created there afterwards; only metadata is read, and contents are never shown."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    config_maps = f"/api/v1/namespaces/{scene.namespace}/configmaps"
    body = naming("train", serving.managed_by, "settings", "absent", claim="data", annotations=ON_EAST)
    await scene.create(body)
    await scene.source_until("train", is_active)  # and no more: it waits there for its claim
    await scene.client_of("east").create(config_maps, {"metadata": {"name": "settings"}, "data": {"key": "content"}})
    # What is here is not asked for: the worker's is what counts.
    await scene.client.create(config_maps, {"metadata": {"name": "absent"}})

    assert await there(ann, "train") == {
        ("east", "ConfigMap settings"): ("Exists", ""),
        ("east", "ConfigMap absent"): ("Missing", ""),
        ("east", "PersistentVolumeClaim data"): ("Unknown", NO_PERMISSION.format("persistentvolumeclaims", "east")),
    }
    text = await ann.mirror("diff", "train")
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert rows.index("WORKER OBJECT THERE WHY") < rows.index("east ConfigMap settings yes -")
    assert "east ConfigMap absent no -" in rows
    assert "content" not in text

    await scene.client_of("east").create(config_maps, {"metadata": {"name": "absent"}})
    assert (await there(ann, "train"))["east", "ConfigMap absent"] == ("Exists", "")


async def test_before_a_job_is_created_each_worker_that_could_take_it_is_asked(
    serving: ManagerProcess, scene: Scene, management: ControlPlane, tmp_path: Path
) -> None:
    """One has it; of the other the manager may not read it, and says so, which is no error."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    await allow(scene, "ann", ("batch", "jobs", "create"))
    for worker in ("east", "west"):
        await scene.client_of(worker).create(
            f"/api/v1/namespaces/{scene.namespace}/configmaps", {"metadata": {"name": "settings"}}
        )
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(naming("train", serving.managed_by, "settings", "absent")))

    refused = ("Unknown", NO_PERMISSION.format("configmaps", "west"))
    assert await there(ann, "-f", str(file)) == {
        ("east", "ConfigMap settings"): ("Exists", ""),
        ("east", "ConfigMap absent"): ("Missing", ""),
        ("west", "ConfigMap settings"): refused,
        ("west", "ConfigMap absent"): refused,
    }
    assert f"not known {refused[1]}" in " ".join((await ann.mirror("diff", "-f", str(file))).split())
    assert await scene.source("train") is None


async def test_who_may_not_see_it_at_home_learns_nothing_of_the_worker(
    serving: ManagerProcess, scene: Scene, management: ControlPlane
) -> None:
    """Kubernetes' role ``view`` has no Secrets; with the permission the same question is answered."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    await scene.create(naming("train", serving.managed_by, secret="token", annotations=ON_EAST))
    await scene.source_until("train", runs(1))

    ((state, message),) = (await there(ann, "train")).values()
    assert state == "Unknown"
    assert "cannot get secrets" in message

    await allow(scene, "ann", ("", "secrets", "get"))
    look = partial(there, ann, "train")
    await until(look, lambda found: found == {("east", "Secret token"): ("Missing", "")})


async def test_copies_that_went_along_are_told_from_what_was_there(
    serving: ManagerProcess, scene: Scene, management: ControlPlane
) -> None:
    """*Yes, a copy*: it goes with the last Job that needs it."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    await allow(scene, "ann", ("", "secrets", "get"))
    for plural, body in NEEDED.items():
        await scene.client.create(f"/api/v1/namespaces/{scene.namespace}/{plural}", body)
    body = needing("train", serving.managed_by, run_for="never")
    body["metadata"]["annotations"]["jobmirror.io/worker-selector"] = "name=east"
    await scene.create(body)
    await scene.source_until("train", runs(1))

    assert await there(ann, "train") == {
        ("east", "ServiceAccount builder"): ("Copied", ""),
        ("east", "ConfigMap settings"): ("Copied", ""),
        ("east", "Secret token"): ("Copied", ""),
    }
    assert "yes, a copy" in await ann.mirror("diff", "train")
    [item] = json.loads(await ann.mirror("diff", "train", "-o", "json"))["items"]
    assert item["goesAlong"] == [
        {"object": one, "state": "Exists", "message": "goes along"}
        for one in ("ServiceAccount builder", "ConfigMap settings", "Secret token")
    ]


async def test_what_is_to_go_along_and_is_missing_here_is_told_before_and_while_the_job_waits(
    serving: ManagerProcess, scene: Scene, management: ControlPlane, tmp_path: Path
) -> None:
    """No worker has what will be copied, nor what is misspelt; what a worker has of its own is named as such."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    await allow(scene, "ann", ("batch", "jobs", "create"))
    core = f"/api/v1/namespaces/{scene.namespace}"
    for name in ("settings", "level"):
        await scene.client.create(f"{core}/configmaps", {"metadata": {"name": name}, "data": {"key": "here"}})
    await scene.client_of("east").create(f"{core}/configmaps", {"metadata": {"name": "level"}, "data": {"key": "x"}})
    pull_secret: Json = {"metadata": {"name": "builder"}, "imagePullSecrets": [{"name": "registry"}]}
    await scene.client.create(f"{core}/serviceaccounts", pull_secret)
    body = naming(
        "train", serving.managed_by, "settings", "setings", "level", annotations=ON_EAST | {"carry": ",".join(NEEDED)}
    )
    body["spec"]["template"]["spec"]["serviceAccountName"] = "builder"
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(body))

    user = f"system:serviceaccount:{scene.namespace}:ann"
    missing = f"missing permission: user {user} cannot get secrets registry in namespace {scene.namespace}"
    fix = f"create it in namespace {scene.namespace} of the management cluster, or correct its name"
    waits = f"(here) ConfigMap setings no the Job waits for it (DependencyMissing): {fix}"
    conflict = "otherwise the worker refuses the Job (DependencyConflict)"
    wanted = [
        "WORKER OBJECT THERE WHY",
        "(here) ServiceAccount builder yes goes along",
        "(here) ConfigMap settings yes goes along",
        waits,
        "(here) ConfigMap level yes goes along",
        f"(here) Secret registry not known {missing} of the management cluster",
        "east ServiceAccount builder no the manager copies it",
        "east ConfigMap settings no the manager copies it",
        "east ConfigMap setings no nothing to copy: it is missing here",
        f"east ConfigMap level yes, not ours not ours: used only if its contents are the same, {conflict}",
        f"east Secret registry not known {missing} of the management cluster",
    ]
    rows = [" ".join(line.split()) for line in (await ann.mirror("diff", "-f", str(file))).splitlines()]
    assert rows[rows.index(wanted[0]) :][: len(wanted)] == wanted

    await scene.create(body)
    await scene.source_until("train", says("DependencyMissing", "ConfigMap setings does not exist"))
    assert waits in [" ".join(line.split()) for line in (await ann.mirror("diff", "train")).splitlines()]
    await scene.client_of("east").delete(f"{core}/configmaps/level")
    await scene.client.create(f"{core}/configmaps", {"metadata": {"name": "setings"}})
    await scene.source_until("train", runs(1))
    found = await there(ann, "train")
    copied = ("ServiceAccount builder", "ConfigMap settings", "ConfigMap setings", "ConfigMap level")
    assert {name: found["east", name] for name in copied} == dict.fromkeys(copied, ("Copied", ""))
