"""``mirror worker``, as an operator types it, on two fresh real control planes with RBAC (issue 6, part 3)."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from e2e.commands import Said, contexts, said_by
from e2e.controlplane.client import Client, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import MANAGEMENT, WORKER
from e2e.jobs import Scene, is_complete, job
from e2e.manager import Identity, ManagerProcess
from e2e.troubles.stage import says

RBAC = "/apis/rbac.authorization.k8s.io/v1"
MIRROR = Path(sys.executable).with_name("mirror")
OF_THE_MACHINE = ("latency", "clock")
SCORES = ("--scores", "quota,clusterQueue,allocatable", "--pod-requests")
"""What a check warns of when the machine has a pause while it asks."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Somebody at a command line, with a kubeconfig of both clusters and the manager's namespace."""

    kubeconfig: Path
    namespace: str
    managed_by: str

    async def mirror(self, *arguments: str) -> Said:
        """Run ``mirror worker …`` to its end."""
        return await said_by(await self.start(*arguments))

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """Begin ``mirror worker …``."""
        return await asyncio.create_subprocess_exec(
            MIRROR,
            "worker",
            *arguments,
            f"--kubeconfig={self.kubeconfig}",
            f"--namespace={self.namespace}",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Tests may run in the background of a shell, where it is ignored; a person's terminal does not ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    async def add(self, name: str, *more: str, context: str = "east") -> Said:
        return await self.mirror(
            "add", name, "--context", context, "--allow", "loopback", "--managed-by", self.managed_by, *more
        )

    async def check(self, *more: str) -> Said:
        return await self.mirror("check", "--allow", "loopback", "--managed-by", self.managed_by, *more)

    async def check_until(self, text: str) -> Said:
        """Check the worker until it says this: an API server learns of new rights a moment later."""
        said = await self.check("east")
        async with asyncio.timeout(180):
            while text not in said.output:
                said = await self.check("east")
        return said


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def planes(binaries: None) -> AsyncIterator[dict[str, Cluster]]:
    """Two clusters that nobody has used."""
    async with Cluster.start("hub", MANAGEMENT) as hub, Cluster.start("fresh-east", WORKER) as east:
        yield {"hub": hub, "east": east}


@pytest_asyncio.fixture(loop_scope="session")
async def manager(planes: dict[str, Cluster]) -> AsyncIterator[ManagerProcess]:
    """One without workers."""
    async with ManagerProcess.start(planes["hub"], {}) as running:
        yield running


@pytest.fixture
def operator(planes: dict[str, Cluster], manager: ManagerProcess, tmp_path: Path) -> Operator:
    """With both clusters as contexts of one file, the management cluster the current one."""
    return Operator(contexts(tmp_path / "config", planes), manager.namespace, manager.managed_by)


@pytest_asyncio.fixture(loop_scope="session")
async def scene(planes: dict[str, Cluster]) -> AsyncIterator[Scene]:
    one = Scene(planes["hub"], {"east": planes["east"]}, f"team-{Identity.new().origin[-6:]}")
    await one.make_namespace()
    await one.make_namespace("east")
    yield one
    await one.remove_namespaces()
    await one.close()


async def test_a_worker_from_the_first_command_to_the_last(
    operator: Operator, manager: ManagerProcess, scene: Scene, planes: dict[str, Cluster]
) -> None:
    """add → check → list → a Job runs there → cordon → drain → remove, with the rights that add gave and no others.

    A Job that comes before there is a worker says so, and goes there.
    """
    await scene.create(job("early", manager.managed_by))
    await scene.source_until("early", says("NoWorkers", "no worker is registered"))
    event = await scene.event("early", "NoWorkers")
    assert (event["type"], event["message"]) == ("Warning", "no worker is registered")
    added = await operator.add("east", "--labels", "region=eu", "--capacity", "20", "--logs", *SCORES)
    assert added.code == 0, added
    assert "✓ serviceaccount" in added.output
    assert "✗" not in added.output

    await scene.source_until("early", is_complete)
    await scene.create(job("first", manager.managed_by))
    await scene.source_until("first", is_complete)
    assert list(await scene.mirrors("first")) == ["east"]

    checked = await operator.check("east", "-o", "json")
    assert checked.code == 0, checked
    (report,) = json.loads(checked.output)["items"]
    verdicts = {one["what"]: one["verdict"] for one in report["findings"]}
    texts = {one["what"]: one["text"] for one in report["findings"]}
    for score in ("score quota", "score clusterQueue", "score allocatable", "pods' requests"):
        assert [text for what, text in texts.items() if what.startswith(f"optional: {score} (")] == ["allowed"]
    assert texts["optional: pods' trouble (workers.watchPods)"].startswith("not granted, and not needed without it: ")
    assert {verdict for what, verdict in verdicts.items() if what not in OF_THE_MACHINE} == {"ok"}, report
    assert {"TLS", "version", "identity", "clock", "latency", "token", "permissions", "namespaces", "manager"} <= set(
        verdicts
    )

    (row,) = json.loads((await operator.mirror("list", "-o", "json")).output)["items"]
    assert (row["name"], row["state"], row["capacity"], row["labels"]["region"]) == ("east", "Connected", 20, "eu")
    assert row["version"].startswith("v1.")
    assert row["tokenExpires"]
    table = await operator.mirror("list")
    assert table.output.splitlines()[0].startswith("NAME")

    again = await operator.add("east", "--weight", "2")
    assert again.code == 0, again
    secret = await manager.client.get(f"/api/v1/namespaces/{manager.namespace}/secrets/east")
    annotations = secret["metadata"]["annotations"]
    assert (annotations["jobmirror.io/capacity"], annotations["jobmirror.io/weight"]) == ("20", "2")
    assert "clusterrolebinding jobmirror-worker-logs" in again.output  # deleted: it was not requested again
    assert "deleted" in again.output

    await scene.create(job("second", manager.managed_by, run_for="never"))
    await scene.source_until("second", lambda found: bool(found and (found.get("status") or {}).get("active")))
    assert (await operator.mirror("cordon", "east")).code == 0
    refused = await operator.mirror("remove", "east")
    assert refused.code == 1
    assert "1 unfinished Jobs are on worker east" in refused.errors
    early = await operator.mirror("drain", "east", "--timeout", "0s")
    assert early.code == 1
    assert f"{scene.namespace}/second" in early.errors
    async with asyncio.TaskGroup() as scope:
        draining = scope.create_task(operator.mirror("drain", "east"), name="drain")
        await asyncio.sleep(3)  # nothing announces that it goes on waiting
        assert not draining.done()
        await scene.delete("second")
    assert draining.result().code == 0, draining.result()

    removed = await operator.mirror("remove", "east", "--clean-up", "--worker-context", "east")
    assert removed.code == 0, removed
    assert await scene.mirrors("first") == {}
    async with Client(planes["east"].kubeconfig) as client:
        for collection in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
            left = (await client.get(f"{RBAC}/{collection}"))["items"]
            assert not [one for one in left if one["metadata"]["name"].startswith("jobmirror")]
    assert json.loads((await operator.mirror("list", "-o", "json")).output)["items"] == []


async def test_a_worker_leaves_no_mirrors_behind_or_says_which(
    operator: Operator, manager: ManagerProcess, scene: Scene, planes: dict[str, Cluster]
) -> None:
    """Without the permission to delete: each mirror is named, and nothing is unregistered; with it they all go."""
    added = await operator.add("east", "--no-check")  # namespaces of others may be going
    assert added.code == 0, added
    manager.expect_complaints("east")
    await scene.create(job("done", manager.managed_by))
    await scene.source_until("done", is_complete)
    role = f"{RBAC}/clusterroles/jobmirror-worker-{manager.namespace}"
    async with Client(planes["east"].kubeconfig) as client:
        rules = (await client.get(role))["rules"]
        without = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "delete"]} for rule in rules]
        await client.merge(role, {"rules": without})
        await operator.check_until("missing: delete jobs")

        drained = await operator.mirror("drain", "east")
        assert drained.code == 1
        assert (
            f"! not deleted: Job {scene.namespace}/done: missing permission: delete jobs.batch done" in drained.errors
        )
        assert f"1 mirror left on worker east: Job {scene.namespace}/done" in drained.errors
        removed = await operator.mirror("remove", "east")
        assert (removed.code, "it stays registered" in removed.errors) == (1, True)
        assert list(await scene.mirrors("done")) == ["east"]

        await client.merge(role, {"rules": rules})
        await operator.check_until("all required permissions granted")
    removed = await operator.mirror("remove", "east")
    assert (removed.code, removed.output) == (0, "✓ 1 mirror deleted\n✓ worker east is unregistered\n"), removed
    assert await scene.mirrors("done") == {}
    again = await operator.add("east", "--no-check")
    assert again.code == 0, again
    assert (await operator.mirror("remove", "east", "--clean-up", "--worker-context", "east")).code == 0


async def test_workers_are_watched_until_ctrl_c(operator: Operator, manager: ManagerProcess) -> None:
    """One line for each that there is, then one for each change."""
    assert (await operator.add("east", "--no-check")).code == 0
    watching = await operator.start("list", "-w", "-o", "json")
    try:
        assert watching.stdout is not None
        async with asyncio.timeout(120):
            row = json.loads(await watching.stdout.readline())
            assert (row["name"], row["cordoned"]) == ("east", False)
            assert (await operator.mirror("cordon", "east")).code == 0
            while not row["cordoned"]:
                row = json.loads(await watching.stdout.readline())
            watching.send_signal(signal.SIGINT)
            _, errors = await watching.communicate()
        assert (watching.returncode, errors.decode()) == (130, "")
    finally:
        if watching.returncode is None:
            watching.kill()
            await watching.wait()
    assert (await operator.mirror("remove", "east", "--clean-up", "--worker-context", "east")).code == 0


async def test_chosen_namespaces_get_roles_and_nothing_else(
    operator: Operator, manager: ManagerProcess, scene: Scene, planes: dict[str, Cluster]
) -> None:
    """No ClusterRole at all; the check says what the manager has to be told."""
    missing = await operator.add("narrow", "--namespaces", "no-such-namespace", "--no-check")
    assert missing.code == 1
    assert "namespace no-such-namespace not found" in missing.errors

    added = await operator.add("narrow", "--namespaces", scene.namespace, "--no-check")
    assert added.code == 0, added
    assert "clusterrole" not in added.output
    checked = await operator.check("narrow")
    assert f"namespaces: [{scene.namespace}]" in checked.output
    manager.expect_complaints("narrow")
    assert (await operator.mirror("remove", "narrow", "--clean-up", "--worker-context", "east")).code == 0


async def test_a_worker_is_added_by_the_kubeconfig_that_cluster_api_has_written(
    operator: Operator, manager: ManagerProcess, scene: Scene, planes: dict[str, Cluster]
) -> None:
    """The operator needs no context of the worker; what is stored is an account of ours, and a Job runs there."""
    administrators = base64.b64encode(planes["east"].kubeconfig.read_bytes()).decode()
    secrets = f"/api/v1/namespaces/{scene.namespace}/secrets"
    body = {"metadata": {"name": "prod-kubeconfig"}, "data": {"value": administrators}}
    await manager.client.create(secrets, body)
    added = await operator.mirror(
        *("add", "prod", "--from-secret", f"{scene.namespace}/prod-kubeconfig", "--allow", "loopback", "--no-check"),
        *("--managed-by", operator.managed_by),
    )
    assert added.code == 0, added
    assert f"(secret {scene.namespace}/prod-kubeconfig)" in added.output

    stored = await manager.client.get(f"/api/v1/namespaces/{manager.namespace}/secrets/prod")
    (user,) = yaml.safe_load(base64.b64decode(stored["data"]["kubeconfig"]))["users"]
    assert user["user"].keys() == {"token"}
    await scene.create(job("train", manager.managed_by))
    await scene.source_until("train", is_complete)
    assert (await operator.mirror("remove", "prod", "--clean-up", "--worker-context", "east")).code == 0


async def test_what_stands_against_a_worker_is_said_before_anything_is_made(
    operator: Operator, manager: ManagerProcess, planes: dict[str, Cluster], tmp_path: Path
) -> None:
    """Loopback, a Secret of somebody else's, the management cluster itself, a missing right."""
    loopback = await operator.mirror("add", "east", "--context", "east")
    assert loopback.code == 1
    assert "workers.allow.loopback" in loopback.errors
    assert "--allow loopback" in loopback.errors

    secrets = f"/api/v1/namespaces/{manager.namespace}/secrets"
    await manager.client.create(secrets, {"metadata": {"name": "theirs"}})
    theirs = await operator.add("theirs")
    assert theirs.code == 1
    assert "does not register a worker" in theirs.errors

    itself = await operator.add("itself", context="hub")
    assert itself.code == 1
    assert "namespace-prefix" in itself.errors

    document = yaml.safe_load(operator.kubeconfig.read_text())
    nobody = yaml.safe_load(planes["east"].kubeconfig_for("nobody").read_text())
    document["users"].append({**nobody["users"][0], "name": "nobody"})
    document["contexts"].append({"name": "nobody", "context": {"cluster": "east", "user": "nobody"}})
    operator.kubeconfig.write_text(yaml.safe_dump(document))
    powerless = await operator.add("east", context="nobody")
    assert powerless.code == 1
    assert "missing permission: get namespaces kube-system" in powerless.errors
    assert f"kubectl --kubeconfig {operator.kubeconfig} --context nobody auth can-i get namespaces" in powerless.errors
    assert len(powerless.errors.strip().splitlines()) == 1

    async with Client(planes["east"].kubeconfig) as client:
        for path in (
            f"{RBAC}/clusterroles/jobmirror-worker-{manager.namespace}",
            f"/api/v1/namespaces/{manager.namespace}",
        ):
            with pytest.raises(StatusError):
                await client.get(path)

    plan = await operator.add("east", "--dry-run")
    assert plan.code == 0
    kinds = [one["kind"] for one in yaml.safe_load_all(plan.output)]
    assert kinds[:2] == ["Namespace", "ServiceAccount"]
    assert kinds[-1] == "Secret"
    assert "token: TOKEN" in plan.output


async def test_a_check_says_what_is_missing_and_how_to_mend_it(
    operator: Operator, manager: ManagerProcess, planes: dict[str, Cluster], scene: Scene
) -> None:
    """A right that was taken away, a namespace that is not there, a token that is of no use."""
    await operator.add("east")
    manager.expect_complaints("east")
    await scene.create(job("waiting", manager.managed_by))
    await scene.source_until("waiting", is_complete)
    async with Client(planes["east"].kubeconfig) as client:
        await client.delete(f"/api/v1/namespaces/{scene.namespace}")
        await operator.check_until(f"namespaces: missing: {scene.namespace}")
        binding = f"{RBAC}/clusterrolebindings/jobmirror-worker-{manager.namespace}"
        role = f"{RBAC}/clusterroles/jobmirror-worker-{manager.namespace}"
        rules = [rule for rule in (await client.get(role))["rules"] if rule["resources"] != ["jobs"]]
        allowed = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch", "create"]}
        await client.merge(role, {"rules": [*rules, allowed]})
        found = await operator.check_until("missing: patch jobs, delete jobs")
        assert found.code == 1
        assert "mirror worker add east" in found.output

        await client.delete(binding)
        accounts = f"/api/v1/namespaces/{manager.namespace}/serviceaccounts"
        await client.delete(f"{accounts}/jobmirror")
        found = await operator.check_until("credentials rejected (401 Unauthorized)")
        assert found.code == 1

    mended = await operator.add("east")
    assert mended.code in (0, 1)
    assert "✗ permissions" not in mended.output
    assert "✗ connection" not in mended.output
    await scene.delete("waiting")
    assert (await operator.mirror("remove", "east", "--clean-up", "--worker-context", "east")).code == 0
