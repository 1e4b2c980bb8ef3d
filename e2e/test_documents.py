"""An operator and a user, each with nothing but the documents, on three fresh real control planes (issue 6, part 7).

RBAC is on, and the manager has the rights of the manifests that the operator applies. No node runs its pod, so a
process plays it, with the account and the settings of those manifests. What each command is for is in its document;
``tests/documents`` asks that no command of any document is left out, here or elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from e2e.commands import contexts
from e2e.controlplane.client import Client, Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import MANAGEMENT, WORKER
from e2e.documents.reader import Reader
from e2e.jobs import RUN_FOR_KEY, job
from e2e.kubelets import stub_kubelet, with_kubelet
from e2e.manager import Identity, ManagerProcess
from e2e.manifests import NAMESPACE
from e2e.ports import reserved_port
from e2e.serving import https_at
from mirror.model import names
from tests.documents.commands import blocks

TEAM = "team-a"
LOOPBACK = " --allow loopback"
LOSING = "docs/losing-a-worker.md"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:jobmirror"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
pytestmark = pytest.mark.timeout(1200)


@dataclass(frozen=True, slots=True)
class Town:
    """Who and what is there once the operator has installed everything."""

    planes: dict[str, Cluster]
    manager: ManagerProcess
    operator: Reader
    user: Reader
    url: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def town(
    binaries: None, tmp_path_factory: pytest.TempPathFactory, required_program: Callable[..., Path]
) -> AsyncIterator[Town]:
    """The operator's story up to two workers: install, start, add, check."""
    required_program("bash")
    desks = tmp_path_factory.mktemp("desks")
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(Cluster.start("management", MANAGEMENT))
        planes = {"management": hub}
        for name in ("east", "west"):
            planes[name] = await stack.enter_async_context(Cluster.start(name, WORKER))
            await with_kubelet(planes[name], await stack.enter_async_context(stub_kubelet()))
            async with Client(planes[name].kubeconfig) as client:
                await client.create("/api/v1/namespaces", {"metadata": {"name": TEAM}})
        operator = Reader.at(desks / "operator", contexts(desks / "operator.kubeconfig", planes))
        settings = await install(operator)
        address = f"127.0.0.1:{stack.enter_context(reserved_port())}"
        manager = await stack.enter_async_context(running(hub, settings, address))
        user = Reader.at(desks / "user", await account_of_a_user(hub))
        yield Town(planes, manager, operator, user, f"https://{address}")


async def install(operator: Reader) -> Json:
    """Three ways to install, one after the other, each over the one before; the settings of the last."""
    await operator.follow("kubectl apply --server-side -k deploy/kustomize/overlays/single")
    (operator.desk / "kustomization.yaml").write_text(blocks("deploy/README.md", "yaml")[0])
    await operator.follow("kubectl apply --server-side --kustomize .")
    kustomization, settings, *_ = blocks("docs/operating.md", "yaml")
    (operator.desk / "kustomization.yaml").write_text(kustomization)
    (operator.desk / "mirror.yaml").write_text(settings)
    await operator.follow("mirror check-config FILE", put={"FILE": "mirror.yaml"})
    await operator.follow("kubectl apply --server-side -k .")
    await operator.follow("kubectl apply -f config/rbac/job-controller.yaml")
    await operator.follow("kubectl -n jobmirror-system rollout restart deployment/jobmirror")
    assert "deployment.apps/jobmirror" in await operator.follow("kubectl -n jobmirror-system get deployment,pods")
    found: Json = yaml.safe_load(settings)
    return found


@asynccontextmanager
async def running(hub: Cluster, settings: Json, address: str) -> AsyncIterator[ManagerProcess]:
    """What the Deployment's pod would run; outside of a cluster, addresses and the way to the account differ."""
    account = await hub.service_account_kubeconfig(NAMESPACE, "jobmirror")
    outside: Json = {
        "kubeconfig": str(account),
        "listen": "127.0.0.1:0",
        "log": {"format": "text"},
        "https": https_at(address),
        "access": {**settings["access"], "url": f"https://{address}"},
        "workers": {"allow": {"loopback": True}, **yaml.safe_load(blocks(LOSING, "yaml")[0])["workers"]},
    }
    identity = Identity(NAMESPACE, names.DEFAULT_MANAGED_BY, "")
    manager = ManagerProcess(hub, identity=identity, settings={**settings, **outside})
    try:
        await manager.prepare()
        manager.launch()
        await manager.wait_until_ready()
        yield manager
        await manager.stop()
        lacking = [one for one in await hub.audit_entries() if one.user == ACCOUNT and one.is_forbidden]
        assert not lacking, f"the manifests give too few rights: {lacking[:5]}"
    finally:
        print("log:", *manager.log_lines()[-200:], sep="\n")
        await manager.close(removes_namespace=False)


async def test_an_operator_adds_workers_and_a_user_runs_jobs(town: Town) -> None:
    """Every command of the user's documents, and what an operator does before them."""
    operator, user = town.operator, town.user
    added = await operator.follow("mirror worker add east --context east --labels region=eu", also=f"{LOOPBACK} --logs")
    assert "✗" not in added
    await operator.follow(
        "mirror worker add east --context EAST", put={"EAST": f"west{LOOPBACK} --logs", "east": "west"}
    )
    await operator.follow("mirror worker check east", also=LOOPBACK)
    await operator.follow("mirror worker check", also=LOOPBACK)
    await operator.follow_until("mirror worker list", lambda text: text.count("Connected") == 2)
    await operator.follow("kubectl label namespace team-a jobmirror.io/webhook=enabled")
    await until_told(town)

    await follow_one_job(user)
    await choose_and_suspend(user)
    await look_at_what_runs(town)


async def follow_one_job(user: Reader) -> None:
    """docs/users.md, from creation to deletion."""
    await user.follow("kubectl apply -f config/samples/plain.yaml")
    await user.follow("kubectl wait --for=condition=Complete job/plain --timeout=120s")
    await user.follow_until("kubectl describe job plain", lambda text: "Mirrored" in text)
    assert "Complete" in await user.follow("kubectl mirror get")
    assert "Placed" in await user.follow("kubectl mirror explain plain")
    assert "log of plain-" in await user.follow("kubectl mirror logs plain")
    assert "plain-" in await user.follow("kubectl mirror pods plain")
    await user.follow_until("kubectl mirror events plain", lambda text: "SuccessfulCreate" in text)
    assert "spec.managedBy" in await user.follow("kubectl mirror diff plain")
    await user.follow("kubectl delete job plain")
    await user.follow("kubectl mirror diff -f config/samples/indexed.yaml")


async def choose_and_suspend(user: Reader) -> None:
    """docs/users.md: a worker of one's choice, suspending, CronJobs."""
    await user.follow(
        "kubectl annotate --local -f config/samples/indexed.yaml jobmirror.io/worker-selector=name=east -o yaml"
        " | kubectl create -f -"
    )
    await user.follow_until(
        "kubectl mirror get", lambda text: any({"indexed", "east"} <= set(line.split()) for line in text.splitlines())
    )
    await user.follow("kubectl apply -f config/samples/suspended.yaml")
    await user.follow("""kubectl patch job suspended --type merge --patch '{"spec": {"suspend": false}}'""")
    await user.follow("""kubectl patch job suspended --type merge --patch '{"spec": {"suspend": true}}'""")
    await user.follow("kubectl delete job suspended --wait=false")
    (user.desk / "nightly.yaml").write_text(next(text for text in blocks("docs/users.md", "yaml") if "CronJob" in text))
    await user.follow("kubectl apply -f nightly.yaml")
    await user.follow("kubectl create job now --from=cronjob/nightly")
    await user.follow_until("kubectl mirror get", lambda text: "now" in text)


async def look_at_what_runs(town: Town) -> None:
    """docs/commands.md, with a Job that goes on running."""
    user = town.user
    body = job("train", names.DEFAULT_MANAGED_BY, run_for="never", annotations={"worker-selector": "name=east"})
    (user.desk / "job.yaml").write_text(yaml.safe_dump(body))
    await user.follow("mirror diff -f job.yaml")
    await user.follow("kubectl mirror diff -f FILE", put={"FILE": "job.yaml"})
    await user.follow("kubectl label --local -f job.yaml jobmirror.io/webhook=enabled -o yaml | kubectl create -f -")
    await user.follow_until("mirror get", lambda text: "Running" in text)
    await user.follow_on("mirror get -w", "Running")
    await user.follow("mirror explain train")
    await user.follow_on("mirror logs -f train", "log of train-")
    await user.follow_on("kubectl mirror logs -f train", "log of train-")
    assert "log of train-" in await user.follow('mirror logs train --token "$(kubectl create token robot)"')
    await user.follow("mirror pods train --server https://localhost:8443", put={"https://localhost:8443": town.url})
    await user.follow("source <(mirror completion bash)")
    await user.follow("mirror completion fish > ~/.config/fish/completions/mirror.fish")


async def test_an_operator_loses_a_worker_and_follows_the_runbook(town: Town) -> None:
    """What the runbook has one look at shows something, with the worker away and with it back."""
    operator, east = town.operator, town.planes["east"]
    await east.kill_apiserver()
    await operator.follow_until("mirror worker list", lambda text: "Lost" in text)
    assert "✗" in await operator.follow("mirror worker check east", also=LOOPBACK, code=1)
    await operator.follow("kubectl -n jobmirror-system events --for secret/east")
    await east.restart_apiserver()
    await operator.follow_until("mirror worker list", lambda text: "Lost" not in text)
    await operator.follow("mirror worker check east", also=LOOPBACK)
    await operator.follow("mirror worker add east --context east --labels region=eu", also=f"{LOOPBACK} --logs")

    lease = await operator.follow("kubectl -n jobmirror-system get lease jobmirror-manager -o yaml")
    assert yaml.safe_load(lease)["spec"]["holderIdentity"]
    allowed = await operator.follow(
        "kubectl auth can-i update leases.coordination.k8s.io/jobmirror-manager -n jobmirror-system"
        " --as=system:serviceaccount:jobmirror-system:jobmirror"
    )
    assert allowed.startswith("yes")
    await operator.follow(
        "kubectl auth can-i --list -n jobmirror-system --as=system:serviceaccount:jobmirror-system:jobmirror"
    )
    assert "jobmirror-manager" in await operator.follow("kubectl get leases -A")
    assert "train" in await operator.follow("kubectl mirror get -A")
    assert "Placed" in await operator.follow("kubectl mirror explain train -n team-a")
    token = f' --token "$(kubectl create token robot -n {TEAM})"'
    assert "train-" in await operator.follow("kubectl mirror pods train -n team-a", also=token)
    assert "SuccessfulCreate" in await operator.follow("kubectl mirror events train -n team-a", also=token)
    await look_around(operator)
    await operator.follow_on("kubectl --context east get jobs -A --watch", "train")
    await operator.follow("kubectl label namespace team-a jobmirror.io/webhook-")
    await operator.follow("kubectl -n jobmirror-system delete secret jobmirror-https")


async def look_around(operator: Reader) -> None:
    """Looks that have to succeed, whatever they show."""
    await operator.follow("kubectl -n jobmirror-system get deployment,pods,lease")
    await operator.follow("kubectl -n jobmirror-system describe deployment jobmirror")
    await operator.follow("kubectl -n jobmirror-system get events --sort-by=.lastTimestamp")
    await operator.follow("kubectl get events -A --field-selector reason=Refused")
    await operator.follow("kubectl get events -A --field-selector reason=MirrorConflict")
    await operator.follow("kubectl get events -A --field-selector reason=MirrorLost")
    await operator.follow("kubectl --context east get resourcequota -A")
    await operator.follow("kubectl --context east get --raw '/readyz?verbose'")
    await operator.follow("kubectl get jobs -A")
    await operator.follow("kubectl get jobs -A -o wide")
    why = (
        "kubectl get jobs -A -o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,"
        "WHY:.metadata.annotations.jobmirror\\\\.io/waiting-because"
    )
    assert "train" in await operator.follow(why)
    reason = (
        "kubectl get job train -n team-a -o jsonpath='{.status.conditions[?(@.type==\"jobmirror.io/Placed\")].reason}'"
    )
    assert (await operator.follow(reason)).strip() == "Placed"
    placed = (
        "kubectl wait job/train -n team-a "
        "--for='jsonpath={.status.conditions[?(@.type==\"jobmirror.io/Placed\")].status}=True'"
    )
    await operator.follow(placed)
    await operator.follow("kubectl -n team-a get job train -o yaml")
    assert "managedFields" in await operator.follow("kubectl -n team-a get job train -o yaml --show-managed-fields")
    await operator.follow("kubectl --context east -n team-a get job train -o yaml")
    assert "train" in await operator.follow("kubectl --context east get jobs -A -l jobmirror.io/origin")
    await operator.follow("kubectl --context east get jobs -A -l '!jobmirror.io/origin'")
    await operator.follow("kubectl get pods -A -l batch.kubernetes.io/job-name --field-selector status.phase=Succeeded")


async def test_an_operator_loses_a_worker_and_gets_it_back(town: Town) -> None:
    """What docs/losing-a-worker.md has one try: each policy, a worker that is back, declared dead, drained."""
    operator = town.operator
    town.manager.expect_complaints("breach")
    await three_jobs(operator)
    await operator.follow("mirror worker remove east --force")
    jobs = await operator.follow("kubectl --context east get jobs")
    assert all(name in jobs for name in ("migrate", "render", "etl"))
    await operator.follow_until("kubectl mirror get", on_workers(migrate="east", render="west", etl="east"))
    assert "its lease ends at" in await operator.follow("kubectl mirror explain etl")
    assert "moved from east to west (move 1)" in await operator.follow("kubectl describe job render")

    await operator.follow("mirror worker add east --context east", also=f"{LOOPBACK} --logs")
    deleted = "kubectl get events --field-selector reason=LeftBehindDeleted"
    await operator.follow_until(deleted, lambda text: "job/render" in text)

    await operator.follow("mirror worker remove east --force")
    await operator.follow_until("mirror worker list", lambda text: "Lost" in text)
    said = await operator.follow("mirror worker forget east --all-dead")
    assert "worker east is declared dead: 3 Jobs" in said  # one of another test is pinned to it
    await operator.follow_until("kubectl mirror get", on_workers(migrate="west", render="west", etl="west"))

    said = await operator.follow("mirror worker forget east --undo")
    assert "worker east is not declared dead any more: 1 Job recorded there waits for it" in said
    await operator.follow("mirror worker add east --context east", also=f"{LOOPBACK} --logs")
    breaches = "kubectl get events --field-selector reason=FenceBreached"
    await operator.follow_until(breaches, lambda text: "job/migrate" in text and "job/etl" in text)

    said = await operator.follow("mirror worker drain west --move --started", also=LOOPBACK)
    assert "worker west is empty" in said
    await operator.follow_until("kubectl mirror get", on_workers(migrate="east", render="east", etl="east"))
    await operator.follow("mirror worker uncordon west")
    await operator.follow("kubectl delete -f three.yaml")


async def three_jobs(operator: Reader) -> None:
    """They run on east, where one has a lease."""
    _, three = blocks(LOSING, "yaml")
    bodies = list(yaml.safe_load_all(three))
    for body in bodies:
        body["spec"]["template"]["metadata"] = {"annotations": {RUN_FOR_KEY: "never"}}  # nodes are simulated
    (operator.desk / "three.yaml").write_text(yaml.safe_dump_all(bodies))
    await operator.follow("kubectl apply -f three.yaml")
    await operator.follow_until("kubectl mirror get", on_workers(migrate="east", render="east", etl="east"))
    fenced_for = "kubectl --context east get job etl -o jsonpath='{.spec.activeDeadlineSeconds}'"
    assert int(await operator.follow(fenced_for)) >= 1800


def on_workers(**wanted: str) -> Callable[[str], bool]:
    """A question: does ``mirror get`` show these Jobs on these workers, and that they run, or that nobody knows?"""

    def is_so(text: str) -> bool:
        rows = [set(line.split()) for line in text.splitlines()]
        return all(any({name, worker} <= row for row in rows) for name, worker in wanted.items())

    return is_so


async def test_an_operator_takes_everything_away_again(town: Town) -> None:
    """Removed by force and added again; cordoned, drained, removed; then the manifests."""
    operator = town.operator
    await operator.follow("mirror worker remove east --force")
    await operator.follow("mirror worker add east --context east", also=f"{LOOPBACK} --logs")
    await operator.follow_until("mirror worker list", lambda text: text.count("Connected") == 2)
    await operator.follow("mirror worker cordon east")
    async with asyncio.TaskGroup() as scope:
        draining = scope.create_task(operator.follow("mirror worker drain east"), name="drain")
        await asyncio.sleep(2)  # nothing announces that it goes on waiting
        assert not draining.done()
        await town.user.types("kubectl delete job train")
    await operator.follow("mirror worker remove east")
    await operator.follow(
        "mirror worker drain NAME && mirror worker remove NAME --clean-up --worker-context CTX",
        put={"NAME": "west", "CTX": "west"},
    )
    assert "west" not in await operator.follow("mirror worker list")
    await operator.follow(
        "kubectl --context east delete job -A -l jobmirror.io/origin=ORIGIN", put={"ORIGIN": "of-nobody"}
    )
    await operator.follow(
        "kubectl --context east delete job -A -l jobmirror.io/origin=ORIGIN,jobmirror.io/management-uid=UID",
        put={"ORIGIN": "of-nobody", "UID": "of-nobody-either"},
    )
    await town.manager.stop()
    await operator.follow("kubectl delete -k .")
    (operator.desk / "kustomization.yaml").write_text(blocks("deploy/README.md", "yaml")[0])
    await operator.follow("kubectl delete --kustomize .", also=" --ignore-not-found")


async def until_told(town: Town) -> None:
    """The manager's address and authority are where users look for them."""
    told_at = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{names.ACCESS_CONFIGMAP}"
    await town.manager.client.wait_until(told_at, lambda found: found is not None)


async def account_of_a_user(hub: Cluster) -> Path:
    """A kubeconfig with the team's namespace, of an account that may do there what Kubernetes' role ``edit`` allows."""
    path = await hub.service_account_kubeconfig(TEAM, "robot")
    binding = {
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": TEAM}],
    }
    async with Client(hub.kubeconfig) as client:
        await client.create(f"{RBAC}/namespaces/{TEAM}/rolebindings", binding)
    document = yaml.safe_load(path.read_text())
    document["contexts"][0]["context"]["namespace"] = TEAM
    path.write_text(yaml.safe_dump(document))
    return path
