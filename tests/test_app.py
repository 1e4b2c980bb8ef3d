"""The manager as a whole: who works, in which order it ends, and what keeps it from starting."""

from __future__ import annotations

import asyncio
import gc
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from doubles.clock import LoopClock
from doubles.jobs import job
from doubles.multikueue import CLUSTERS, DEFINITIONS, clusters_definition
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault, Wire, client_of, wire_to
from doubles.world import HOME

from mirror.app import Manager, _build, _tracing
from mirror.connecting import Connections
from mirror.controllers.mirroring_settings import mirroring_settings
from mirror.jobcontroller.controller_conflict import ControllerConflict
from mirror.jobcontroller.metrics import JobMetrics
from mirror.jobcontroller.process import JobControllerComponent, JobControllerSettings
from mirror.kube.client import Client
from mirror.kube.connect import limiter_of
from mirror.kube.permits import WritePermit
from mirror.model import names
from mirror.model.endings import CannotStart
from mirror.model.reasons import Reason
from mirror.planes.plane import ControlPlane, control_plane
from mirror.planes.shape import NONE, Shape
from mirror.runtime.clock import SystemClock
from mirror.runtime.environment import Environment
from mirror.runtime.leadership import LeadershipLost
from mirror.settings.kinds import KindEntry
from mirror.settings.load import parse
from mirror.settings.schema import LeaderElection, Settings, Sharding, Tracing
from mirror.starting import management_uid
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics

pytestmark = pytest.mark.looptime


@pytest.fixture(autouse=True)
def thawed(frozen_again: None) -> Iterator[None]:
    """What a manager froze for its own good is not for the tests."""
    yield
    gc.unfreeze()


async def manager_on(wire: Wire, **changes: object) -> Manager:
    metrics = Metrics()
    connections = Connections(Settings(**changes), metrics)
    return await _build(connections, client_of(wire), Environment(SystemClock(), get_log("test"), metrics))


def holder(wire: Wire) -> str:
    found = wire.server.find("leases", "jobmirror-manager", HOME)
    return str(found["spec"]["holderIdentity"]) if found else ""


@pytest.mark.slow
async def test_one_of_two_managers_works_and_the_other_takes_over() -> None:
    """Both watch; only the leader writes; a clean stop hands over within a few seconds."""
    wire = wire_to("management")
    first, second = await manager_on(wire), await manager_on(wire)
    stop_first, stop_second = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as scope:
        one = scope.create_task(first.run(stop_first), name="one")
        await asyncio.sleep(1)
        scope.create_task(second.run(stop_second), name="two")
        await asyncio.sleep(15)
        assert (first.is_working, second.is_working) == (True, False)
        assert second.mirroring.informers.is_synced
        stop_first.set()
        await one
        assert holder(wire) == ""
        await asyncio.sleep(5)
        assert (first.is_working, second.is_working) == (False, True)
        wire.server.put("jobs", job(suspend=True))
        await asyncio.sleep(1)
        assert [event["reason"] for event in wire.server.all("events")] == ["Suspended"]
        stop_second.set()


@pytest.mark.slow
async def test_without_election_it_works_at_once() -> None:
    """``leaderElection.enabled: false``: no Lease is touched."""
    wire = wire_to("management")
    manager = await manager_on(wire, leader_election=LeaderElection(enabled=False))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(manager.run(stop), name="manager")
        await asyncio.sleep(1)
        assert manager.is_working
        assert wire.server.all("leases") == []
        stop.set()


@pytest.mark.slow
async def test_a_lost_lease_ends_the_process_after_its_work() -> None:
    """Nothing of ours is at work when it ends; the reason is in the group that ``cli`` prints."""
    wire = wire_to("management")
    manager = await manager_on(wire)
    async with asyncio.TaskGroup() as scope:
        running = scope.create_task(_ends_with_loss(manager), name="manager")
        await asyncio.sleep(5)
        wire.arrange("update", "leases", Refused(500, "InternalError"), times=99)
        await running
    assert not manager.is_working


async def _ends_with_loss(manager: Manager) -> None:
    with pytest.raises(ExceptionGroup) as ended:
        await manager.run(asyncio.Event())
    (reason,) = ended.value.exceptions
    assert isinstance(reason, LeadershipLost)


@pytest.mark.slow
async def test_checks_say_what_is_ready() -> None:
    """Readiness: sources known, workers had their chance; standing by is ready, too."""
    wire = wire_to("management")
    manager = await manager_on(wire)
    stop = asyncio.Event()
    _, readiness = manager.checks()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(manager.run(stop), name="manager")
        await asyncio.sleep(5)
        assert {name: check() for name, check in readiness.items()} == {
            "sources": (True, "0 sources"),
            "workers": (True, "0/0 workers ready"),
            "leader": (True, "leading"),
        }
        assert b"jobmirror" in manager.metrics.render()[0]
        stop.set()


def with_jobs(manager: Manager, wire: Wire) -> JobControllerComponent:
    """The manager runs its cluster's unmanaged Jobs, too."""
    jobs = JobControllerComponent(
        client_of(wire),
        JobControllerSettings(),
        environment=Environment(LoopClock(), get_log("jobs"), manager.metrics),
        metrics=JobMetrics(manager.metrics, counts_external=False),
    )
    manager.jobs = jobs
    return jobs


@pytest.mark.slow
async def test_a_manager_runs_jobs_where_it_is_told_to() -> None:
    """``jobController.enabled``: a Lease of its own, checks of its own, and one end for both."""
    wire = wire_to("management")
    manager = await manager_on(wire)
    jobs, stop = with_jobs(manager, wire), asyncio.Event()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(manager.run(stop), name="manager")
        wire.server.put("jobs", job("theirs", managed_by=None, suspend=True))
        await asyncio.sleep(5)
        assert (manager.is_working, jobs.is_working) == (True, True)
        assert {"jobs", "job-leader", "sources", "leader"} <= manager.checks()[1].keys()
        assert holder(wire)
        assert [event["involvedObject"]["name"] for event in wire.server.all("events")] == ["theirs"]
        stop.set()
    assert not wire.server.find("leases", "jobmirror-job-controller", "kube-system")["spec"]["holderIdentity"]


@pytest.mark.slow
async def test_a_fight_over_jobs_does_not_end_the_mirror() -> None:
    """D20: the Job controller alone gives up, and readiness says so from then on."""
    wire = wire_to("management")
    manager = await manager_on(wire)
    jobs, stop = with_jobs(manager, wire), asyncio.Event()

    async def fight(_: asyncio.Event) -> None:
        raise ExceptionGroup("work", [ExceptionGroup("leader's", [ControllerConflict("somebody else runs them")])])

    jobs.run = fight
    async with asyncio.TaskGroup() as scope:
        scope.create_task(manager.run(stop), name="manager")
        await asyncio.sleep(5)
        assert manager.is_working
        assert manager.checks()[1]["job-leader"]() == (False, "somebody else runs them")
        stop.set()


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault.BREAK, id="nobody listens yet"),
        pytest.param(Refused(503, "ServiceUnavailable"), id="its storage is not there yet"),
        pytest.param(forbidden(), id="its roles are not there yet"),
    ],
)
async def test_a_management_cluster_that_is_only_just_starting_is_waited_for(
    fault: Fault | Refused, log_lines: list[dict[str, object]]
) -> None:
    """A node reboots everything at once; the log says what is waited for."""
    wire = wire_to("management")
    wire.arrange("get", "namespaces", fault, times=3)
    assert await management_uid(client_of(wire), get_log("mirror")) == wire.server.uid
    assert {line["event"] for line in log_lines} == {"management cluster not ready"}
    assert all(line["error"] for line in log_lines)


@pytest.mark.parametrize(
    ("minor", "refusal", "says"),
    [
        pytest.param(31, None, "too old", id="no managedBy there"),
        pytest.param(36, Refused(401, "Unauthorized"), "it rejects our credentials: 401", id="401"),
    ],
)
async def test_what_keeps_it_from_starting_is_said_in_one_line(minor: int, refusal: Refused | None, says: str) -> None:
    """For the operator, without a traceback; what waiting cannot mend is said at once."""
    wire = wire_to("management", minor=minor)
    if refusal is not None:
        wire.arrange("get", "namespaces", refusal, times=9)
    with pytest.raises(CannotStart, match=says) as ended:
        await management_uid(client_of(wire), get_log("mirror"))
    assert "\n" not in str(ended.value)
    assert asyncio.get_running_loop().time() < 1


async def test_a_namespace_that_does_not_exist_keeps_it_from_starting() -> None:
    """Neither a Lease nor a worker could ever be found there; the setting that names it is said."""
    wire = wire_to("management")
    with pytest.raises(CannotStart, match=r"^namespace nowhere not found .* \(setting namespace\): create it") as ended:
        await manager_on(wire, namespace="nowhere")
    assert "\n" not in str(ended.value)


@pytest.mark.slow
async def test_a_manager_that_may_not_take_its_lease_is_not_ready() -> None:
    """Where not even events may be created, it shows at the Lease; once the namespace is there, it leads."""
    wire = wire_to("management")
    wire.arrange("create", "events", forbidden(), times=1)
    manager, stop = await manager_on(wire, namespace="nowhere"), asyncio.Event()
    _, readiness = manager.checks()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(manager.run(stop), name="manager")
        await asyncio.sleep(1)
        is_ready, text = readiness["leader"]()
        assert not is_ready
        assert text == (
            "Lease nowhere/jobmirror-manager cannot be taken: namespace nowhere not found on this cluster "
            "(setting namespace)"
        )
        wire.server.put("namespaces", {"metadata": {"name": "nowhere"}})
        await asyncio.sleep(30)
        assert readiness["leader"]() == (True, "leading")
        stop.set()


async def test_a_manager_that_may_not_list_workers_is_not_ready() -> None:
    """It would otherwise look like one that has no workers."""
    wire = wire_to("management")
    for verb in ("list", "watch"):
        wire.arrange(verb, "secrets", forbidden(), times=999)
    manager, stop = await manager_on(wire), asyncio.Event()
    _, readiness = manager.checks()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(manager.run(stop), name="manager")
        await asyncio.sleep(60)
        is_ready, text = readiness["workers"]()
        assert not is_ready
        assert text.startswith(f"Secrets in namespace {HOME} (setting namespace) not listed: 403 Forbidden")
        stop.set()


@pytest.mark.slow
async def test_a_manager_that_may_not_list_jobs_is_not_ready(log_lines: list[dict[str, object]]) -> None:
    """It sees none, and says why, in the log once; it is ready once it may."""
    wire = wire_to("management")
    for verb in ("list", "watch"):
        wire.arrange(verb, "jobs", forbidden(), times=999)
    manager, stop = await manager_on(wire), asyncio.Event()
    _, readiness = manager.checks()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(manager.run(stop), name="manager")
        await asyncio.sleep(60)
        way_out = "the permissions to grant are in config/rbac"
        assert readiness["sources"]() == (False, f"jobs.batch not watched: 403 Forbidden: you may not; {way_out}")
        assert [line["event"] for line in log_lines].count("not watched") == 1
        wire.restore()
        await asyncio.sleep(120)
        assert readiness["sources"]() == (True, "0 sources")
        stop.set()


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "done"), [("get", "read"), ("patch", "written"), ("create", "written")])
async def test_a_manager_that_may_not_keep_its_record_is_not_ready(
    verb: str, done: str, log_lines: list[dict[str, object]]
) -> None:
    """No worker connects, or none for the first time: it names the ConfigMap, in the log, and recovers."""
    wire = wire_to("management")
    wire.arrange(verb, "configmaps", forbidden(), times=999)
    wire.server.put("secrets", {"metadata": {"name": "east", "namespace": HOME, "labels": {names.WORKER: "true"}}})
    manager, stop = await manager_on(wire), asyncio.Event()
    _, readiness = manager.checks()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(manager.run(stop), name="manager")
        await asyncio.sleep(60)
        what = f"ConfigMap {HOME}/jobmirror-workers of the management cluster not {done}"
        why = f"{what}: 403 Forbidden: you may not; the permissions to grant are in config/rbac"
        assert readiness["workers"]() == (False, why)
        logged = [line["because"] for line in log_lines if line["event"] == f"workers not {done}"]
        assert (set(logged), len(logged) <= 2) == ({why}, True), "who takes over reads it, and who follows workers"
        wire.restore()
        await asyncio.sleep(60)
        assert readiness["workers"]() == (True, "0/1 workers ready")
        stop.set()


async def test_the_origin_is_the_clusters_own_unless_it_is_set() -> None:
    """Design §2: two management clusters with a worker in common tell their mirrors apart by it."""
    wire = wire_to("management")
    assert (await manager_on(wire)).origin == wire.server.uid
    assert (await manager_on(wire, origin="prod")).origin == "prod"


@pytest.mark.parametrize(("origin", "said"), [("", ""), ("uid", ""), ("prod", "uid")], ids=["unset", "same", "set"])
def test_mirrors_say_which_management_cluster_they_are_of_where_the_origin_does_not(origin: str, said: str) -> None:
    """D1: two may be given one origin by mistake; by default a mirror has two labels, as ever."""
    settings = parse(f"origin: '{origin}'".encode(), "f")
    transform = mirroring_settings(settings, management_uid="uid", server_knows_rule_names=False).transform
    assert (transform.origin, transform.management_uid) == (origin or "uid", said)
    assert len(transform.own_labels("s")) == (3 if said else 2)


def test_nothing_goes_along_from_where_credentials_of_workers_are() -> None:
    """D27: Cluster API's kubeconfigs are Secrets as others are, and have no label of ours."""
    settings = parse(
        b"namespace: own\n"
        b"dependencies: {secrets: true, namespaces: ['*']}\n"
        b"workers:\n"
        b"  secretSources: [{labelSelector: cluster.x-k8s.io/cluster-name, namespaces: [capi]}]\n"
        b"  clusterProfiles: {enabled: true, namespaces: [fleet]}\n",
        "f",
    )
    policy = mirroring_settings(settings, management_uid="u", server_knows_rule_names=False).transform.dependencies
    assert [bool(policy.allowed(one)) for one in ("own", "capi", "fleet", "default")] == [False] * 3 + [True]


@pytest.mark.slow
async def test_a_kueue_here_does_not_keep_it_from_starting(log_lines: list[dict[str, object]]) -> None:
    """D25: its MultiKueue may run objects of some kinds, too; that those are not placed is logged."""
    shape = Shape(name="management", controllers=NONE)
    async with control_plane(shape, clock=LoopClock(), chance=random.Random(0)) as plane:
        await plane.api.create("/api/v1/namespaces", {"metadata": {"name": HOME}})
        await plane.api.create(DEFINITIONS, clusters_definition())
        settings = Settings(kinds=(KindEntry(kind="JobSet"), KindEntry(kind="TrainJob")))
        environment = Environment(SystemClock(), get_log("test"), Metrics())
        connections = Connections(settings, environment.metrics)
        manager = await _build(connections, plane.client(peer="manager"), environment)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as scope:
            scope.create_task(manager.run(stop), name="manager")
            await asyncio.sleep(5)
            assert manager.is_working
            stop.set()
    (line,) = [line for line in log_lines if line["event"] == "kind not mirrored"]
    assert (line["kind"], "besideKueue: true" in str(line["because"])) == ("TrainJob", True)


class ToPlane:
    """``connecting.Connections``, to a management cluster in this process."""

    def __init__(self, settings: Settings, plane: ControlPlane) -> None:
        self.settings = settings
        self.limiter = limiter_of(settings.management)
        self._plane = plane

    async def management(self, permit: WritePermit | None) -> Client:
        assert permit is not None
        return self._plane.client(peer="slot")


@pytest.mark.slow
async def test_who_assigns_looks_again_at_a_kind_that_is_mirrored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With several slots, too, where what is looked at is that of each share: Kueue's MultiKueue goes (D25)."""
    shape = Shape(name="management", controllers=NONE)
    async with control_plane(shape, clock=LoopClock(), chance=random.Random(0)) as plane:
        await plane.api.create("/api/v1/namespaces", {"metadata": {"name": HOME}})
        for definition in (clusters_definition(), train_jobs()):
            await plane.api.create(DEFINITIONS, definition)
        settings = Settings(kinds=(KindEntry(kind="TrainJob"),), sharding=Sharding(slots=2))
        environment = Environment(SystemClock(), get_log("test"), Metrics())
        manager = await _build(ToPlane(settings, plane), plane.client(peer="manager"), environment)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as scope:
            scope.create_task(manager.run(stop), name="manager")
            await asyncio.sleep(30)
            spec = {"managedBy": "kueue.x-k8s.io/multikueue", "runtimeRef": {"name": "none"}}
            typed = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
            await plane.api.create(TRAIN_JOBS, {**typed, "metadata": {"name": "train"}, "spec": spec})
            await asyncio.sleep(30)
            assert reason_of(await plane.api.get(f"{TRAIN_JOBS}/train")) == Reason.MULTIKUEUE_HERE
            await plane.api.delete(f"{DEFINITIONS}/{CLUSTERS}")
            await asyncio.sleep(90)
            assert reason_of(await plane.api.get(f"{TRAIN_JOBS}/train")) == Reason.NO_WORKERS
            stop.set()


TRAIN_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"


def train_jobs() -> dict[str, object]:
    """A definition of TrainJobs that takes everything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": "trainer.kubeflow.org",
        "scope": "Namespaced",
        "names": {"plural": "trainjobs", "kind": "TrainJob"},
        "versions": [{**version, "subresources": {"status": {}}}],
    }
    return {"metadata": {"name": "trainjobs.trainer.kubeflow.org"}, "spec": spec}


def reason_of(found: dict[str, object]) -> str:
    """Why it has no worker."""
    status = found.get("status")
    listed = status.get("conditions", ()) if isinstance(status, dict) else ()
    return next((str(one["reason"]) for one in listed if one["type"] == names.PLACED), "")


async def test_traces_without_their_extra_keep_it_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather told at once than found missing later; in one line, with what to install."""
    monkeypatch.delitem(sys.modules, "mirror.telemetry.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(CannotStart, match=r"pip install 'jobmirror\[otel\]'") as ended:
        async with _tracing(Settings(tracing=Tracing(enabled=True))):
            pass
    assert "\n" not in str(ended.value)


@pytest.mark.slow
async def test_traces_that_nobody_wants_are_none() -> None:
    """The default."""
    async with _tracing(Settings()) as traces:
        assert traces is None


@pytest.mark.slow
def test_a_manager_does_not_load_what_it_was_not_told_to_use() -> None:
    """Megabytes, and an extra, that most managers do not need: traces and the Job controller."""
    unused = ("opentelemetry", "mirror.controllers.tracing", "mirror.jobcontroller")
    loaded = f"[m for m in {unused} if m in sys.modules]"
    code = f"import sys, mirror.app; print({loaded})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
