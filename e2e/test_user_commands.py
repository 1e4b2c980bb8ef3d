"""``kubectl mirror``, as a user types it, on real control planes with RBAC and the shipped rights (issue 6, part 4).

Users are ServiceAccounts with Kubernetes' own role ``view`` in their namespace, or with nothing. No kubelet serves logs
here; that they arrive is tested on embedded clusters (``tests/cli/test_user_commands.py``).
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest_asyncio
import yaml

from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, indexed, is_complete, job, runs, until, waits_because
from e2e.manager import ManagerProcess
from e2e.people import RBAC, Person, person, until_allowed
from e2e.serving import serving_manager

ON_EAST = {"worker-selector": "name=east"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def serving(management: ControlPlane, east: ControlPlane, west: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """A manager that serves users."""
    async with serving_manager(management, {"east": east, "west": west}) as running:
        yield running


async def test_a_user_finds_and_understands_their_jobs(
    serving: ManagerProcess, scene: Scene, management: ControlPlane, east: ControlPlane
) -> None:
    """Where it is, what happened, its pods and events on the worker, how the mirror differs: no account there."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    nowhere = {"worker-selector": "region=mars"}
    await scene.create(
        indexed("train", serving.managed_by, completions=2, run_for="never", annotations=ON_EAST),
        job("waits", serving.managed_by, annotations=nowhere),
    )
    await scene.source_until("train", runs(2))
    await scene.source_until("waits", waits_because("labels do not match worker-selector"))

    table = {line.split()[0]: line.split() for line in (await ann.mirror("get")).splitlines()}
    assert table["train"][1:4] == ["east", "Running", "0/2"]
    assert table["waits"][1:4] == ["-", "Waiting", "0/1"]

    [story] = json.loads(await ann.mirror("explain", "train", "-o", "json"))["items"]
    kinds = [moment["kind"] for moment in story["timeline"]]
    assert kinds[0] == "Created"
    assert [kind for kind in kinds if kind in ("Placed", "Mirrored")] == ["Placed", "Mirrored"]
    assert story["notes"] == []
    [waiting] = json.loads(await ann.mirror("explain", "waits", "-o", "json"))["items"]
    assert set(waiting["obstacles"]) - {""} == {"east", "west"}

    told = (await ann.mirror("explain", "train", "--color", "always")).splitlines()
    assert told[0].split() == ["Name:", "train"]
    assert any(line.startswith("State:") and line.endswith("\x1b[36mRunning\x1b[0m") for line in told)
    assert any(line.startswith("Worker:") and line.endswith("east") for line in told)
    assert "Timeline:" in told

    pods = json.loads(await ann.mirror("pods", "train", "-o", "json"))["items"]
    assert [pod["index"] for pod in pods] == ["0", "1"]
    there = {pod["metadata"]["name"] for pod in await scene.pods("east", "train")}
    assert {pod["name"] for pod in pods} == there
    await until(lambda: ann.mirror("events", "train"), lambda text: "SuccessfulCreate" in text)
    assert "spec.managedBy" in await ann.mirror("diff", "train")


async def test_explain_says_what_is_wrong_with_pods_that_the_manager_does_not_watch(
    serving: ManagerProcess, scene: Scene, management: ControlPlane, east: ControlPlane
) -> None:
    """Admission on the worker, then a kubelet that finds no image: both are read as the user, and end when they do."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    namespace, enforce = f"/api/v1/namespaces/{scene.namespace}", "pod-security.kubernetes.io/enforce"

    async def problems() -> list[tuple[str, str]]:
        [story] = json.loads(await ann.mirror("explain", "train", "-o", "json"))["items"]
        return [(one["reason"], one["message"]) for one in story["pods"]]

    async with east.client() as client:
        await client.merge(namespace, {"metadata": {"labels": {enforce: "restricted"}}})
        body = job("train", serving.managed_by, run_for="never", annotations=ON_EAST)
        body["spec"]["template"]["spec"]["schedulerName"] = "nobody"
        await scene.create(body)
        ((reason, message),) = await until(problems, bool)
        assert (reason, message.startswith("violates PodSecurity")) == ("PodsForbidden", True)
        assert "(cannot be created)" in await ann.mirror("explain", "train")

        await client.merge(namespace, {"metadata": {"labels": {enforce: None}}})
        await until(lambda: scene.pods("east", "train"), bool)
        (pod,) = await scene.pods("east", "train")
        status = {
            "phase": "Pending",
            "containerStatuses": [
                {
                    "name": "main",
                    "image": "nope:1",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}},
                }
            ],
        }
        await client.merge(f"{namespace}/pods/{pod['metadata']['name']}/status", {"status": status})
        assert await problems() == [("ImagePullBackOff", "container main: image nope:1: not found")]


async def test_a_user_with_an_account_on_the_worker_goes_there(
    serving: ManagerProcess, scene: Scene, management: ControlPlane, east: ControlPlane
) -> None:
    """``--worker-context``: the same answers, by the user's own rights there."""
    context = yaml.safe_load(east.kubeconfig.read_text())["current-context"]
    renamed = management.directory / f"{scene.namespace}.east.kubeconfig"
    document = yaml.safe_load(east.kubeconfig.read_text())
    for plural, part in (("contexts", "context"), ("clusters", "cluster"), ("users", "user")):
        for entry in document[plural]:
            entry["name"] = f"east-{entry['name']}"
            if plural == "contexts":
                entry[part] |= {"cluster": f"east-{entry[part]['cluster']}", "user": f"east-{entry[part]['user']}"}
    document.pop("current-context")
    renamed.write_text(yaml.safe_dump(document))
    bob = await person(management, scene.namespace, "bob", serving, may_view=True, also=str(renamed))
    await scene.create(job("train", serving.managed_by, run_for="never", annotations=ON_EAST))
    await scene.source_until("train", runs(1))

    by_worker = ("--worker-context", f"east-{context}")
    for command in (("pods", "train", "-o", "name"), ("diff", "train", "-o", "json")):
        direct, served = await bob.mirror(*command, *by_worker), await bob.mirror(*command)
        if command[0] == "pods":
            assert direct == served != ""
        else:
            first, second = (json.loads(text)["items"][0]["report"]["differences"][0] for text in (direct, served))
            assert first == second
    await until(lambda: bob.mirror("events", "train", *by_worker), lambda text: "SuccessfulCreate" in text)


async def test_a_user_without_rights_is_told_which(
    serving: ManagerProcess, scene: Scene, management: ControlPlane
) -> None:
    """The verb, the resource and the namespace; by the cluster itself and by the manager."""
    eve = await person(management, scene.namespace, "eve", serving, may_view=False)
    await scene.create(job("train", serving.managed_by))
    await scene.source_until("train", is_complete)

    assert f"missing permission: list jobs.batch in namespace {scene.namespace} on the management cluster" in (
        await eve.refused("get")
    )
    for command, right in (("pods", "get jobs.batch"), ("logs", "get jobs.batch"), ("diff", "get jobs.batch")):
        assert f"eve cannot {right} train in namespace {scene.namespace}" in await eve.refused(command, "train")


async def test_users_with_client_certificates_need_no_token(
    serving: ManagerProcess, scene: Scene, management: ControlPlane
) -> None:
    """As kind's and kubeadm's administrators, and as a user of a group: by their own rights, and no account between."""
    await scene.create(job("train", serving.managed_by, run_for="never", annotations=ON_EAST))
    await scene.source_until("train", runs(1))
    await management.kubectl(
        *("create", "rolebinding", "crew", "--clusterrole=view", "--group=crew", "--namespace", scene.namespace)
    )
    async with management.client() as client:
        await until_allowed(client, scene.namespace, "carol", groups=["crew"])
    admin, carol, dave = (
        Person(str(found), scene.namespace, serving.namespace)
        for found in (
            management.kubeconfig,
            management.kubeconfig_for("carol", groups=["crew"]),
            management.kubeconfig_for("dave"),
        )
    )

    for one in (admin, carol):
        assert (await one.mirror("pods", "train", "-o", "name")).startswith("pod/train-")
        assert json.loads(await one.mirror("explain", "train", "-o", "json"))["items"][0]["notes"] == []
        await until(partial(one.mirror, "events", "train"), lambda text: "SuccessfulCreate" in text)
        assert "spec.managedBy" in await one.mirror("diff", "train")
        # No kubelet serves logs here: that is the worker's word, so the manager has let them that far.
        assert "worker east" in await one.refused("logs", "train")
    refused = await dave.refused("pods", "train")
    assert f"user dave cannot get jobs.batch train in namespace {scene.namespace}" in refused


async def test_a_token_of_a_service_account_does_where_certificates_do_not(
    serving: ManagerProcess, scene: Scene, management: ControlPlane
) -> None:
    """As ``kubectl create token`` gives it; what the ServiceAccount may not, its token may not."""
    await scene.create(job("train", serving.managed_by, run_for="never"))
    await scene.source_until("train", runs(1))
    await person(management, scene.namespace, "ann", serving, may_view=True)
    await person(management, scene.namespace, "eve", serving, may_view=False)
    admin = Person(str(management.kubeconfig), scene.namespace, serving.namespace)

    may, may_not = [
        (await management.kubectl("create", "token", name, "-n", scene.namespace)).strip() for name in ("ann", "eve")
    ]
    assert (await admin.mirror("pods", "train", "-o", "name", "--token", may)).startswith("pod/train-")
    assert ":eve cannot get jobs.batch" in await admin.refused("pods", "train", "--token", may_not)


async def test_jobs_are_watched_until_ctrl_c(serving: ManagerProcess, scene: Scene, management: ControlPlane) -> None:
    """Each change is a line; the end is quiet."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    watching = await ann.start("get", "-w", "-o", "json", "-n", scene.namespace)
    try:
        assert watching.stdout is not None
        await scene.create(job("train", serving.managed_by))
        states: list[str] = []
        async with asyncio.timeout(180):
            while "Complete" not in states:
                states.append(json.loads(await watching.stdout.readline())["state"])
        watching.send_signal(signal.SIGINT)
        async with asyncio.timeout(60):
            _, errors = await watching.communicate()
        assert errors.decode() == ""
    finally:
        if watching.returncode is None:
            watching.kill()
            await watching.wait()


async def test_kubectl_completes_names_of_jobs(serving: ManagerProcess, scene: Scene, management: ControlPlane) -> None:
    """``kubectl mirror logs tr<TAB>``: kubectl asks ``kubectl_complete-mirror``."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    await scene.create(job("train", serving.managed_by))

    typed = ("__complete", "mirror", "logs", "-n", scene.namespace, "tr")
    # Nothing is offered when asking took too long for somebody who types.
    await until(lambda: ann.says(*typed, under=""), lambda said: said.output.splitlines() == ["train", ":4"])


async def test_a_log_that_no_kubelet_serves_is_an_error_in_words(
    serving: ManagerProcess, scene: Scene, management: ControlPlane
) -> None:
    """The worker's API server cannot reach the simulated node: the user learns that, in one line."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    await scene.create(job("train", serving.managed_by, run_for="never", annotations=ON_EAST))
    await scene.source_until("train", runs(1))

    assert "worker east" in await ann.refused("logs", "train")


async def test_what_a_job_needs_is_told_before_it_is_sent(
    serving: ManagerProcess, scene: Scene, management: ControlPlane, tmp_path: Path
) -> None:
    """``diff -f`` needs the right to create Jobs, as sending it would; without, default settings have to do."""
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    body = job("train", serving.managed_by)
    body["spec"]["template"]["spec"]["serviceAccountName"] = "robot"
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(body))

    text = await ann.mirror("diff", "-f", str(file))

    assert "ServiceAccount robot is not copied" in text
    assert "cannot create jobs.batch" in text


async def test_where_a_job_would_be_placed_is_explained(
    serving: ManagerProcess, scene: Scene, management: ControlPlane, tmp_path: Path
) -> None:
    """``place --dry-run``: each filter and score of each worker, for who may create the Job; then it goes there."""
    name = "ann"
    ann = await person(management, scene.namespace, name, serving, may_view=True)
    body = job("train", serving.managed_by, annotations={"worker-order": "west,east"})
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(body))
    assert "cannot create jobs.batch" in await ann.refused("place", "--dry-run", "-f", str(file))

    async with management.client() as client:
        path = f"/apis/{RBAC}/v1/namespaces/{scene.namespace}"
        rules = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]}]
        await client.create(f"{path}/roles", {"metadata": {"name": "creates"}, "rules": rules})
        binding = {
            "metadata": {"name": "creates"},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "creates"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": scene.namespace}],
        }
        await client.create(f"{path}/rolebindings", binding)
    command = ("place", "--dry-run", "-f", str(file), "-n", scene.namespace)
    said = await until(lambda: ann.says(*command, "-o", "json"), lambda said: said.code == 0)
    [item] = json.loads(said.output)["items"]
    choice = item["choice"]

    assert choice["worker"] == "west"
    assert {one["worker"]: (one["rank"], one["order"]) for one in choice["workers"]} == {"west": (1, 1), "east": (2, 2)}
    assert all(result["passed"] for one in choice["workers"] for result in one["filters"])
    text = (await ann.says(*command)).output
    assert text.startswith(f"Job {scene.namespace}/train would be placed on west\n")
    assert await scene.mirrors("train") == {}
    await scene.create(body)
    await scene.source_until("train", is_complete)
    assert list(await scene.mirrors("train")) == ["west"]
