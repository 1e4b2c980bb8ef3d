"""``mirror worker``: the command line in process, and each command against whole clusters over HTTPS, with RBAC."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import pytest_asyncio
import yaml
from click.testing import CliRunner

from mirror.cli.main import main
from mirror.cli.user.failures import Failure
from mirror.cli.worker import add, check, drain, listing
from mirror.cli.worker.changing import change, changes_of
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations import worker_objects
from mirror.cli.worker.operations.sites import ClusterError
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.kinds.batch_job.status_stored import leaving_text
from mirror.model import names
from mirror.planes.api import Api
from mirror.planes.plane import ControlPlane, control_plane
from mirror.planes.serving import served
from mirror.planes.shape import NONE, Shape
from mirror.runtime.clock import SystemClock

HOME = "jobmirror-system"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Clusters:
    """A management cluster and a worker, nobody's yet, and a kubeconfig with both."""

    management: ControlPlane
    east: ControlPlane
    where: Where

    def asked(self, **more: Any) -> add.Asked:
        return add.Asked(**{"name": "east", "context": "east", "allow": ("loopback",), "where": self.where, **more})

    async def check(self) -> dict[str, tuple[str, str]]:
        """Verdict and text of each finding."""
        async with check.clusters.home(self.where) as home:
            (report,) = await check.reports(home, check.Asked(allow=("loopback",), where=self.where))
        return {one.what: (one.verdict, one.text) for one in report.findings}


@pytest_asyncio.fixture
async def clusters(tmp_path: Path) -> AsyncIterator[Clusters]:
    planes: dict[str, ControlPlane] = {}
    document: dict[str, Any] = {"current-context": "hub", "clusters": [], "users": [], "contexts": []}
    async with AsyncExitStack() as stack:
        for name in ("hub", "east"):
            shape = Shape(name=name, controllers=NONE, authorization="RBAC")
            around = control_plane(shape, clock=SystemClock(), chance=random.Random(name))
            planes[name] = await stack.enter_async_context(around)
            found = yaml.safe_load((await stack.enter_async_context(served(planes[name]))).kubeconfig)
            document["clusters"].append({**found["clusters"][0], "name": name})
            document["users"].append({**found["users"][0], "name": name})
            document["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(document))
        await planes["hub"].api.create("/api/v1/namespaces", {"metadata": {"name": HOME}})
        yield Clusters(planes["hub"], planes["east"], Where(kubeconfig=str(path)))


async def named(api: Api, *collections: str) -> set[str]:
    """What of ours there is."""
    found = [one for collection in collections for one in await api.list(f"{RBAC}/{collection}")]
    return {one["metadata"]["name"] for one in found if one["metadata"]["name"].startswith("jobmirror")}


def source(name: str) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}]}}
    spec = {"managedBy": names.DEFAULT_MANAGED_BY, "template": template}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def document_of(where: Where) -> dict[str, Any]:
    """The kubeconfig with both clusters."""
    found: dict[str, Any] = yaml.safe_load(Path(where.kubeconfig).read_text())
    return found


def authority_of(where: Where, name: str) -> str:
    """Who signed a cluster's certificate."""
    document = document_of(where)
    return next(one["cluster"]["certificate-authority-data"] for one in document["clusters"] if one["name"] == name)


async def place(api: Api, name: str) -> None:
    """Record a source on the worker, as the manager does."""
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    await api.create(jobs, source(name))
    condition = {"type": names.PLACED, "status": "True", "message": "east", "reason": "Placed"}
    await api.merge(f"{jobs}/{name}/status", {"status": {"conditions": [condition]}})


@pytest.mark.slow
async def test_a_worker_is_added_and_checked(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    """Each step is told; the account has what it needs and the check finds nothing in the way."""
    await add.add(clusters.asked(labels=("region=eu",), capacity=5, logs=True, scores="quota"))

    output = capsys.readouterr().out
    assert "✓ clusterrole jobmirror-worker on the worker (context east)" in output
    assert "✗" not in output
    secret = await clusters.management.api.get(f"/api/v1/namespaces/{HOME}/secrets/east")
    assert secret["metadata"]["labels"] == {"region": "eu", names.WORKER: "true"}
    assert secret["metadata"]["annotations"] == {names.CAPACITY: "5"}
    findings = await clusters.check()
    assert {what for what, (verdict, _) in findings.items() if verdict != "ok"} == {"manager"}
    for what in ("logs, pods and events (access.enabled)", "score quota (placement.scores)"):
        assert findings[f"optional: {what}"] == ("ok", "allowed")
    assert "create namespaces" in findings["optional: creating namespaces (workers.createNamespaces)"][1]


async def test_adding_again_takes_back_what_is_not_wanted_any_more(clusters: Clusters) -> None:
    """Least rights are those of the last call."""
    await add.add(clusters.asked(logs=True, no_check=True))
    before = await clusters.management.api.get(f"/api/v1/namespaces/{HOME}/secrets/east")
    await clusters.east.api.create("/api/v1/namespaces", {"metadata": {"name": "team-a"}})
    await add.add(clusters.asked(namespaces="team-a", no_check=True))

    assert await named(clusters.east.api, "clusterroles", "clusterrolebindings") == set()
    roles = {"jobmirror-worker", "jobmirror-identity", "jobmirror-worker-tokens"}
    assert await named(clusters.east.api, "roles", "rolebindings") == roles
    after = await clusters.management.api.get(f"/api/v1/namespaces/{HOME}/secrets/east")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["data"] != before["data"]
    findings = await clusters.check()
    assert findings["permissions"] == ("warn", "all required permissions granted, in namespaces team-a only")
    assert findings["optional: score quota (placement.scores)"][1].endswith(": list resourcequotas in team-a")


async def test_what_is_in_the_way_is_said_before_anything_is_made(clusters: Clusters) -> None:
    """A Secret of somebody else's, loopback, an unknown context, the management cluster itself."""
    secrets = f"/api/v1/namespaces/{HOME}/secrets"
    await clusters.management.api.create(secrets, {"metadata": {"name": "theirs"}})

    for asked, said in (
        (clusters.asked(name="theirs"), "does not register a worker"),
        (clusters.asked(allow=()), "--allow loopback"),
        (clusters.asked(context="hub"), "namespace-prefix"),
        (clusters.asked(where=Where(clusters.where.kubeconfig, namespace="nowhere")), "install the manager first"),
    ):
        with pytest.raises(ClusterError, match=said):
            await add.add(asked)
    assert await named(clusters.east.api, "clusterroles", "roles") == set()
    with pytest.raises(StatusError):
        await clusters.east.api.get(f"/api/v1/namespaces/{HOME}")


async def test_one_cluster_is_one_worker(clusters: Clusters) -> None:
    """D19: what the manager has written down counts."""
    uid = (await clusters.east.api.get("/api/v1/namespaces/kube-system"))["metadata"]["uid"]
    record = {"metadata": {"name": "jobmirror-workers"}, "data": {"west": json.dumps({"uid": uid})}}
    await clusters.management.api.create(f"/api/v1/namespaces/{HOME}/configmaps", record)

    with pytest.raises(ClusterError, match="registered already, as worker west"):
        await add.add(clusters.asked())


async def test_a_dry_run_asks_nobody(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    """What it prints could be applied, but for the token."""
    await clusters.management.kill()
    await clusters.east.kill()
    await add.add(clusters.asked(dry_run=True))

    bodies = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [one["kind"] for one in bodies][:2] == ["Namespace", "ServiceAccount"]
    assert "token: TOKEN" in bodies[-1]["stringData"]["kubeconfig"]


async def test_a_cluster_that_is_down_is_one_plain_line(clusters: Clusters) -> None:
    """No traceback, no waiting for ever."""
    await clusters.east.kill()

    with pytest.raises(ClusterError, match="is unreachable: connection closed by the API server"):
        await add.add(clusters.asked())


async def test_the_check_names_what_is_missing(clusters: Clusters) -> None:
    """Rights that were taken away, and a namespace that is not there; nothing is made by looking."""
    await add.add(clusters.asked(no_check=True))
    await place(clusters.management.api, "waiting")
    assert (await clusters.check())["namespaces"][0] == "ok"
    assert await clusters.east.api.list("/apis/batch/v1/jobs") == []

    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}]
    await clusters.east.api.merge(f"{RBAC}/clusterroles/jobmirror-worker", {"rules": rules})
    verdict, text = (await clusters.check())["permissions"]
    assert verdict == "fail"
    assert "create jobs" in text


async def test_a_misspelt_annotation_is_a_warning(clusters: Clusters) -> None:
    """The Secret is well-formed, and the worker takes more Jobs than its author wants (D22)."""
    await add.add(clusters.asked(no_check=True))
    assert "annotations" not in await clusters.check()
    annotations = {"metadata": {"annotations": {"jobmirror.io/capactiy": "3"}}}
    await clusters.management.api.merge(f"/api/v1/namespaces/{HOME}/secrets/east", annotations)

    text = "unknown annotation jobmirror.io/capactiy (did you mean jobmirror.io/capacity?)"
    assert (await clusters.check())["annotations"] == ("warn", text)


async def test_a_token_that_is_of_no_use_is_found(clusters: Clusters) -> None:
    """Its account is gone."""
    await add.add(clusters.asked(no_check=True))
    await clusters.east.api.delete(f"/api/v1/namespaces/{HOME}/serviceaccounts/jobmirror")

    assert (await clusters.check())["connection"][1].startswith("credentials rejected")


@pytest.mark.parametrize(
    ("label", "why"),
    [(None, "has no label jobmirror.io/worker=true"), ("yes", "has label jobmirror.io/worker=yes instead of true")],
)
async def test_a_secret_that_registers_nothing_says_what_it_lacks(
    clusters: Clusters, label: str | None, why: str
) -> None:
    """It is there, so that *not found* would send people looking elsewhere."""
    await add.add(clusters.asked(no_check=True))
    path = f"/api/v1/namespaces/{HOME}/secrets/east"
    await clusters.management.api.merge(path, {"metadata": {"labels": {"jobmirror.io/worker": label}}})

    async with check.clusters.home(clusters.where) as home:
        with pytest.raises(ClusterError) as told:
            await worker_objects.find(home, "east")
    fix = f"kubectl label secret east --namespace {HOME} --overwrite jobmirror.io/worker=true"
    assert str(told.value) == f"Secret east is no worker: it {why}; {fix}"


async def test_a_server_with_another_certificate_is_found(clusters: Clusters) -> None:
    """TLS is looked at first: nothing is sent to a stranger."""
    await add.add(clusters.asked(no_check=True))
    path = f"/api/v1/namespaces/{HOME}/secrets/east"
    secret = await clusters.management.api.get(path)
    document = yaml.safe_load(base64.b64decode(secret["data"]["kubeconfig"]))
    document["clusters"][0]["cluster"]["certificate-authority-data"] = authority_of(clusters.where, "hub")
    data = {"kubeconfig": base64.b64encode(yaml.safe_dump(document).encode()).decode()}
    await clusters.management.api.merge(path, {"data": data})

    verdict, text = (await clusters.check())["TLS"]
    assert verdict == "fail"
    assert "certificate is not accepted" in text


async def test_what_a_worker_gets_is_set_and_taken_away(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    """On the Secret, and nothing that the manager could not read."""
    await add.add(clusters.asked(no_check=True))
    path = f"/api/v1/namespaces/{HOME}/secrets/east"
    before = (await clusters.management.api.get(path))["metadata"]["labels"]

    await change(clusters.where, "east", changes_of("20", "2", "team-*", ["region=eu,gpu=a100"]))
    assert "capacity 20, weight 2, namespaces team-*, label region=eu, label gpu=a100" in capsys.readouterr().out
    metadata = (await clusters.management.api.get(path))["metadata"]
    assert metadata["annotations"] == {names.CAPACITY: "20", names.WEIGHT: "2", names.NAMESPACES: "team-*"}
    assert metadata["labels"] == before | {"region": "eu", "gpu": "a100"}

    with pytest.raises(click.BadParameter, match=r"expected a whole number from 0 up, got 'many'"):
        changes_of("many", "", "", [])
    await change(clusters.where, "east", changes_of("none", "", "none", ["gpu-"]))
    metadata = (await clusters.management.api.get(path))["metadata"]
    assert metadata["annotations"] == {names.WEIGHT: "2"}
    assert metadata["labels"] == before | {"region": "eu"}
    with pytest.raises(ClusterError, match="west"):
        await change(clusters.where, "west", changes_of("1", "", "", []))


@pytest.mark.parametrize(
    ("labels", "message"),
    [([], "nothing to set"), (["region"], "expected KEY=VALUE"), (["jobmirror.io/worker-"], "set by jobmirror itself")],
)
def test_what_cannot_be_set_is_a_usage_error(labels: list[str], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        changes_of("", "", "", labels)


@pytest.mark.slow
async def test_a_worker_is_listed_cordoned_drained_and_removed(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """And refuses to go while a Job is there."""
    await add.add(clusters.asked(no_check=True))
    api = clusters.management.api
    await place(api, "train")
    capsys.readouterr()

    await drain.cordon(clusters.where, "east")
    await listing.show(clusters.where, "json")
    printed = capsys.readouterr().out
    (row,) = json.loads(printed[printed.index("{") :])["items"]
    assert (row["name"], row["state"], row["jobs"], row["cordoned"]) == ("east", "Unknown", 1, True)
    with pytest.raises(ClusterError, match="1 unfinished Jobs are on worker east"):
        await drain.remove(clusters.where, "east", drain.Removal())
    with pytest.raises(Failure, match="default/train"):
        await drain.drain(clusters.where, "east", timeout_seconds=0)
    secret = await api.get(f"/api/v1/namespaces/{HOME}/secrets/east")
    assert secret["metadata"]["annotations"] == {names.CORDONED: "true", names.DRAIN: "wait"}
    await drain.uncordon(clusters.where, "east")
    secret = await api.get(f"/api/v1/namespaces/{HOME}/secrets/east")
    assert not secret["metadata"].get("annotations")

    draining = asyncio.create_task(drain.drain(clusters.where, "east", timeout_seconds=120), name="drain")
    await asyncio.sleep(0.2)
    await api.delete("/apis/batch/v1/namespaces/default/jobs/train")
    await draining
    never = "✓ worker east has no Jobs, and the manager has never been connected to it: mirror worker remove east"
    assert never in capsys.readouterr().out

    uid = (await clusters.east.api.get("/api/v1/namespaces/kube-system"))["metadata"]["uid"]
    with pytest.raises(ClusterError, match="nothing is cleaned up"):
        await drain.remove(clusters.where, "east", drain.Removal(worker_context="hub"))
    record = {"metadata": {"name": "jobmirror-workers"}, "data": {"east": json.dumps({"uid": uid})}}
    await api.create(f"/api/v1/namespaces/{HOME}/configmaps", record)
    await drain.remove(clusters.where, "east", drain.Removal(worker_context="east"))
    assert await named(clusters.east.api, "clusterroles", "clusterrolebindings", "roles", "rolebindings") == set()
    with pytest.raises(StatusError):
        await api.get(f"/api/v1/namespaces/{HOME}/secrets/east")


@pytest.mark.parametrize("how", ["move", "move-started"])
async def test_a_drain_by_moving_is_asked_for_on_the_secret(
    clusters: Clusters, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    """The manager does it, whoever waits; what has stopped and leaves is counted."""
    await add.add(clusters.asked(no_check=True))
    await place(clusters.management.api, "train")
    path = "/apis/batch/v1/namespaces/default/jobs/train"
    source = await clusters.management.api.get(path)
    listed = source["status"]["conditions"]
    leaving = ("Suspended", "WorkerDrained", leaving_text("east"))
    for kind, reason, message in (leaving, (names.MIRRORED, "MirrorCreated", "u-1")):
        listed.append({"type": kind, "status": "True", "reason": reason, "message": message})
    await clusters.management.api.replace(f"{path}/status", source)
    capsys.readouterr()

    with pytest.raises(Failure, match="default/train"):
        await drain.drain(clusters.where, "east", how=how, timeout_seconds=0)

    secret = await clusters.management.api.get(f"/api/v1/namespaces/{HOME}/secrets/east")
    assert secret["metadata"]["annotations"] == {names.DRAIN: how}
    assert "1 Job still running, 1 of them stopped and leaving (default/train)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["drain", "east", "--started"], "--started belongs to --move"),
        (["drain", "east", "--timeout", "soon"], "expected a duration"),
        (["remove", "east", "--clean-up"], "go together"),
        (["add", "east"], "--context"),
        (["add", "east", "--context", "x", "--token-duration", "5m"], "less than 10m"),
        (["check", "east", "--all"], "--all cannot be combined with names"),
    ],
    ids=["move", "timeout", "clean-up", "no context", "short token", "all and a name"],
)
def test_wrong_usage_is_told_with_code_two(arguments: list[str], said: str) -> None:
    """Nobody is asked anything."""
    result = CliRunner().invoke(main, ["worker", *arguments])

    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize("command", ["list", "check", "cordon", "drain", "remove"])
def test_without_a_kubeconfig_it_is_one_line_and_code_one(command: str, tmp_path: Path) -> None:
    """Wherever it is called."""
    arguments = [] if command in ("list", "check") else ["east"]
    result = CliRunner().invoke(main, ["worker", command, *arguments, "--kubeconfig", str(tmp_path / "none")])

    assert result.exit_code == 1
    assert "no such file" in result.output
    assert len(result.output.strip().splitlines()) == 1


@pytest.mark.slow
async def test_a_worker_is_added_by_an_administrators_kubeconfig_in_a_secret(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Cluster API writes it: it makes our own small account, and is stored nowhere."""
    document = document_of(clusters.where)
    admin = {**document, "current-context": "east"}
    encoded = base64.b64encode(yaml.safe_dump(admin).encode()).decode()
    api = clusters.management.api
    await api.create("/api/v1/namespaces", {"metadata": {"name": "clusters"}})
    body = {"metadata": {"name": "east-kubeconfig", "namespace": "clusters"}, "data": {"value": encoded}}
    await api.create("/api/v1/namespaces/clusters/secrets", body)

    await add.add(clusters.asked(context="", from_secret="clusters/east-kubeconfig"))

    assert "✓ clusterrole jobmirror-worker on the worker (secret clusters/east-kubeconfig)" in capsys.readouterr().out
    secret = await api.get(f"/api/v1/namespaces/{HOME}/secrets/east")
    stored = yaml.safe_load(base64.b64decode(secret["data"]["kubeconfig"]))
    user = next(one["user"] for one in document["users"] if one["name"] == "east")
    (ours,) = stored["users"]
    assert ours["name"] != "east"
    assert ours["user"].keys() == {"token"}
    assert ours["user"]["token"] != user.get("token")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        pytest.param({"from_secret": "east-kubeconfig"}, "expected NAMESPACE/NAME", id="no namespace"),
        pytest.param({"from_secret": "default/none"}, "secret default/none not found", id="no Secret"),
        pytest.param({"from_secret": "default/admin", "key": "other"}, "data.other: is missing", id="no key"),
        pytest.param({"from_secret": "default/admin", "key": "exec"}, "runs a command", id="a command"),
    ],
)
async def test_a_secret_that_is_of_no_use_is_refused_before_anything_is_made(
    clusters: Clusters, asked: dict[str, str], told: str
) -> None:
    """The manager's policy of kubeconfigs holds for it, too."""
    plugin = {"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"}
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://east.example"}}],
        "users": [{"name": "c", "user": {"exec": plugin}}],
    }
    data = {"exec": base64.b64encode(json.dumps(document).encode()).decode()}
    body = {"metadata": {"name": "admin", "namespace": "default"}, "data": data}
    await clusters.management.api.create("/api/v1/namespaces/default/secrets", body)

    with pytest.raises(ClusterError, match=told):
        await add.add(clusters.asked(context="", **asked))


def test_where_the_rights_come_from_is_said_once() -> None:
    """A context, or a Secret."""
    for options in ((), ("--context", "a", "--from-secret", "b/c")):
        result = CliRunner().invoke(main, ["worker", "add", "east", *options])
        assert result.exit_code == 2
        assert "specify either --context or --from-secret" in result.output


@pytest.mark.parametrize(
    ("data", "entry"),
    [
        pytest.param({}, {"state": "Lost", "reason": "data.kubeconfig: is missing"}, id="no kubeconfig"),
        pytest.param(
            {"kubeconfig": "e30="},
            {"state": "Lost", "reason": "kubeconfig refused: clusters: is missing", "refusal": "KubeconfigRefused"},
            id="one that the manager refuses",
        ),
    ],
)
async def test_a_worker_that_is_declared_wrongly_is_not_schedulable(
    clusters: Clusters, capsys: pytest.CaptureFixture[str], data: dict[str, str], entry: dict[str, str]
) -> None:
    """As Jobs that wait for it say: ``misconfigured``."""
    labels = {names.WORKER: "true"}
    secret = {"metadata": {"name": "east", "namespace": HOME, "labels": labels}, "data": data}
    await clusters.management.api.create(f"/api/v1/namespaces/{HOME}/secrets", secret)
    record = {"metadata": {"name": names.WORKERS_CONFIGMAP, "namespace": HOME}, "data": {"east": json.dumps(entry)}}
    await clusters.management.api.create(f"/api/v1/namespaces/{HOME}/configmaps", record)

    await listing.show(clusters.where, "text")

    assert "no (misconfigured)" in capsys.readouterr().out


async def test_a_worker_that_something_else_declares_is_listed_by_what_is_recorded(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its Secret may be anywhere, and need not exist any more."""
    entry = {
        "uid": "u",
        "state": "Connected",
        "declared": {"by": "Secret clusters/prod-kubeconfig", "capacity": 3, "cordoned": True},
        "remark": "its name is also declared by Secret clusters/b, which is ignored",
    }
    body = {"metadata": {"name": names.WORKERS_CONFIGMAP, "namespace": HOME}, "data": {"prod": json.dumps(entry)}}
    await clusters.management.api.create(f"/api/v1/namespaces/{HOME}/configmaps", body)

    await listing.show(clusters.where, "text")

    output = capsys.readouterr().out
    assert "declared by Secret clusters/prod-kubeconfig" in output
    assert "no (cordoned)" in output
    assert "also declared by Secret clusters/b" in output
    with pytest.raises(Failure, match="checks failed: prod"):
        await check.check(check.Asked(workers=("prod",), where=clusters.where))
    gone = "worker prod is declared by Secret clusters/prod-kubeconfig, which does not exist any more"
    assert f"declaration: {gone}" in capsys.readouterr().out
