"""The Job controller with all its parts: who works, in which order it ends, what ends it (D20), what it tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from doubles.clock import LoopClock
from doubles.jobs import job
from doubles.loglines import Lines
from doubles.pods import Node
from doubles.refusals import Refused
from doubles.transport import Fault, Wire, client_of, wire_to

from mirror.batch import rule_names
from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller import process
from mirror.jobcontroller.controller_conflict import ControllerConflict
from mirror.jobcontroller.decide.values import Constants
from mirror.jobcontroller.metrics import JobMetrics
from mirror.jobcontroller.process import JobControllerComponent, JobControllerSettings, _ask_who_is_there, settings_of
from mirror.kube.client import Client
from mirror.model.endings import CannotStart
from mirror.runtime.environment import Environment
from mirror.runtime.leadership import LeadershipLost
from mirror.settings.schema import JobController, LeaderElection, Limits, Settings
from mirror.telemetry.logs import Log, get_log
from mirror.telemetry.metrics import Metrics

LEASE = "jobmirror-job-controller"


def part_on(wire: Wire, **changes: Any) -> JobControllerComponent:
    process = Metrics()
    settings = JobControllerSettings(**changes)
    return JobControllerComponent(
        client_of(wire),
        settings,
        environment=Environment(LoopClock(), get_log("test"), process),
        metrics=JobMetrics(process),
    )


def holder(wire: Wire) -> str:
    found = wire.server.find("leases", LEASE, "kube-system")
    return str(found["spec"]["holderIdentity"]) if found else ""


def suspended(name: str) -> dict[str, Any]:
    return job(name, managed_by=None, suspend=True)


def told(wire: Wire) -> list[str]:
    return sorted(event["involvedObject"]["name"] for event in wire.server.all("events"))


@pytest.mark.looptime
async def test_one_of_two_works_and_the_other_takes_over() -> None:
    """Both watch; only the leader writes; a clean stop hands the Lease over at once, after its events are sent."""
    wire = wire_to("home")
    first, second = part_on(wire), part_on(wire)
    stop_first, stop_second = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as scope:
        one = scope.create_task(first.run(stop_first), name="one")
        await asyncio.sleep(1)
        scope.create_task(second.run(stop_second), name="two")
        wire.server.put("jobs", suspended("a"))
        await asyncio.sleep(5)
        assert (first.is_working, second.is_working) == (True, False)
        assert all(fine for fine, _ in (check() for check in second.checks().values()))
        assert told(wire) == ["a"]
        stop_first.set()
        await one
        assert holder(wire) == ""
        wire.server.put("jobs", suspended("b"))
        await asyncio.sleep(5)
        assert (first.is_working, second.is_working) == (False, True)
        assert told(wire) == ["a", "b"]
        stop_second.set()


@pytest.mark.looptime
async def test_without_election_it_works_at_once() -> None:
    """``--no-leader-election``: no Lease is touched."""
    wire = wire_to("home")
    part, stop = part_on(wire, leader_election=LeaderElection(enabled=False)), asyncio.Event()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(part.run(stop), name="part")
        await asyncio.sleep(0.5)
        assert part.is_working
        assert {name: check() for name, check in part.checks().items()} == {
            "jobs": (True, "jobs and pods are known"),
            "job-leader": (True, "leading"),
        }
        assert wire.server.all("leases") == []
        stop.set()


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("knows", "gates", "reason"),
    [
        pytest.param(
            True, FeatureGates(), "PodFailurePolicy_0", id="a server that stores names: every rule has one (RN1)"
        ),
        pytest.param(False, FeatureGates(), "PodFailurePolicy", id="one that drops them"),
        pytest.param(
            True, FeatureGates(pod_failure_policy_name=False), "PodFailurePolicy", id="without the gate (RN4)"
        ),
    ],
)
async def test_it_asks_its_server_whether_it_knows_names_of_rules(
    monkeypatch: pytest.MonkeyPatch, knows: bool, gates: FeatureGates, reason: str
) -> None:
    """D17, RN1, RN2: once, before the first sync."""
    asked: list[Client] = []

    async def answer(client: Client, *field: str, log: Log) -> bool:
        assert field == rule_names.FIELD
        asked.append(client)
        return knows

    monkeypatch.setattr(process, "stores_field", answer)
    wire = wire_to("home")
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    made = job(managed_by=None, podFailurePolicy={"rules": [rule]}, podReplacementPolicy="Failed")
    wire.server.put("jobs", made)
    part, stop = part_on(wire, gates=gates, leader_election=LeaderElection(enabled=False)), asyncio.Event()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(part.run(stop), name="part")
        await asyncio.sleep(2)
        (pod,) = wire.server.all("pods")
        Node(wire).fail(pod["metadata"]["name"], exit_code=42)
        await asyncio.sleep(3)
        (found,) = wire.server.all("jobs")
        told = {one["type"]: one["reason"] for one in found["status"]["conditions"]}
        assert told == {"FailureTarget": reason, "Failed": reason}
        assert len(asked) == int(gates.pod_failure_policy_name)
        stop.set()


@pytest.mark.looptime
async def test_it_is_not_ready_before_it_knows_the_jobs() -> None:
    """A server that does not answer."""
    wire = wire_to("home")
    wire.is_down = True
    part, stop = part_on(wire), asyncio.Event()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(part.run(stop), name="part")
        await asyncio.sleep(5)
        assert part.checks()["jobs"]() == (False, "listing")
        wire.restore()
        await asyncio.sleep(10)
        assert part.checks()["jobs"]()[0]
        assert part.is_working
        stop.set()


GANG = FeatureGates(generic_workload=True, workload_with_job=True)


@pytest.mark.slow
@pytest.mark.looptime
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(
            None,
            "the API server does not serve workloads of scheduling.k8s.io/v1alpha2, which WorkloadWithJob needs: ",
            id="not served",
        ),
        pytest.param(
            Refused(403, "Forbidden", "no"),
            "missing permission to list and watch workloads of scheduling.k8s.io, which WorkloadWithJob needs: ",
            id="not allowed",
        ),
    ],
)
async def test_gang_scheduling_that_is_not_possible_holds_all_jobs(
    answer: Refused | None, told: str, log_lines: Lines
) -> None:
    """As upstream, whose caches are never complete then: no Job is synced, rather than some without their gang.

    ``/readyz`` and the log say what to change; the log once, not at each try.
    """
    wire = wire_to("home")
    if answer is not None:
        for verb in ("list", "watch"):
            wire.arrange(verb, "workloads", answer, times=10_000)
    wire.server.put("jobs", suspended("a"))
    part, stop = part_on(wire, gates=GANG), asyncio.Event()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(part.run(stop), name="part")
        await asyncio.sleep(600)
        is_ready, why = part.checks()["jobs"]()
        assert not is_ready
        assert why.startswith(told)
        assert wire.server.get("jobs", "a").get("status") in (None, {})
        asked = [one for one in wire.sent if "/workloads" in one.path]
        assert 10 < len(asked) < 60
        stop.set()
    problems = [line["because"] for line in log_lines if line["level"] == "error"]
    assert sum(problem.startswith(told) for problem in problems) == 1


@pytest.mark.looptime
async def test_a_lost_lease_ends_it_after_its_work() -> None:
    """Another may work from then on."""
    wire = wire_to("home")
    part = part_on(wire)
    async with asyncio.TaskGroup() as scope:
        running = scope.create_task(ending_of(part), name="part")
        await asyncio.sleep(3)
        wire.arrange("update", "leases", Refused(500, "InternalError"), times=99)
        assert [type(reason) for reason in await running] == [LeadershipLost]
    assert not part.is_working


async def ending_of(part: JobControllerComponent) -> list[BaseException]:
    """Why it ended, without the groups around."""
    with pytest.raises(ExceptionGroup) as ended:
        await part.run(asyncio.Event())
    leaves: list[BaseException] = list(ended.value.exceptions)
    while any(isinstance(one, BaseExceptionGroup) for one in leaves):
        leaves = [x for one in leaves for x in (one.exceptions if isinstance(one, BaseExceptionGroup) else [one])]
    return leaves


@pytest.mark.looptime
async def test_a_fight_ends_it_and_frees_the_lease() -> None:
    """D20: kube-controller-manager goes on writing; ours stops within seconds, and nothing of it is left."""
    wire = wire_to("home")
    part = part_on(wire)
    for name in "abc":
        wire.server.put("jobs", suspended(name))
    async with asyncio.TaskGroup() as scope:
        running = scope.create_task(ending_of(part), name="part")
        for _ in range(30):
            await asyncio.sleep(1)
            for name in "abc":
                wire.server.edit("jobs", name, written_by_the_rival(wire))
        (reason,) = await running
    assert isinstance(reason, ControllerConflict)
    assert (holder(wire), part.is_working) == ("", False)


def written_by_the_rival(wire: Wire) -> Callable[[dict[str, Any]], None]:
    entry = {"manager": "kube-controller-manager", "subresource": "status", "time": wire.clock.text()}

    def change(body: dict[str, Any]) -> None:
        body["metadata"]["managedFields"] = [entry]
        body["status"] = {"active": body.get("status", {}).get("active", 0) + 1}

    return change


@pytest.mark.looptime
async def test_a_server_that_does_not_answer_is_told_of_until_it_does(log_lines: Lines) -> None:
    """The informers try again in silence; somebody has to say why nothing happens."""
    wire = wire_to("home")
    wire.is_down = True
    async with asyncio.TaskGroup() as scope:
        asking = scope.create_task(_ask_who_is_there(client_of(wire), get_log("test")), name="ask")
        await asyncio.sleep(60)
        wire.restore()
        await asking
    assert 5 < len(log_lines) < 12


@pytest.mark.looptime
async def test_a_cluster_that_is_too_old_is_refused() -> None:
    """Said in one line, with the server's address."""
    with pytest.raises(CannotStart, match=r"cluster at https://home: .*1\.28"):
        await _ask_who_is_there(client_of(wire_to("home", minor=28)), get_log("test"))


@pytest.mark.looptime
async def test_a_hanging_server_does_not_keep_it() -> None:
    """SIGTERM to the end: less than ten seconds."""
    wire = wire_to("home")
    part, stop = part_on(wire), asyncio.Event()
    wire.server.put("jobs", suspended("a"))
    wire.arrange("create", "events", Fault.HANG)
    async with asyncio.TaskGroup() as scope:
        running = scope.create_task(part.run(stop), name="part")
        await asyncio.sleep(3)
        wire.is_hung = True
        stop.set()
        began = wire.clock.monotonic()
        await running
        assert wire.clock.monotonic() - began < 8


def test_settings_of_the_manager_become_its_own() -> None:
    """Limits, constants and gates from the file; the environment has the last word."""
    settings = Settings(
        kubeconfig="/etc/kubeconfig",
        namespaces=("a",),
        job_controller=JobController(
            enabled=True,
            qps=50.0,
            burst=60,
            lease_namespace="home",
            feature_gates={"JobManagedBy": False},
            batch_period_seconds=0.5,
            max_uncounted_pods=9,
        ),
    )
    environment = {"JOB_BATCH_PERIOD_SECONDS": "0.25", "JOB_FEATURE_GATES": "JobSuccessPolicy=false"}

    found = settings_of(settings, environment)

    assert found.constants == Constants(batch_period_seconds=0.25, max_uncounted_pods=9)
    assert found.gates == FeatureGates(job_managed_by=False, job_success_policy=False)
    assert (found.limits, found.kubeconfig) == (Limits(qps=50.0, burst=60), "/etc/kubeconfig")
    assert (found.lease_namespace, found.namespaces) == ("home", ("a",))


def test_defaults_are_the_same_in_both() -> None:
    """A file that says nothing means upstream's constants and limits."""
    assert settings_of(Settings(), {}) == JobControllerSettings()


def test_a_bad_environment_keeps_the_manager_from_starting() -> None:
    """In one line that names the variables."""
    with pytest.raises(CannotStart, match=r"JOB_BATCH_PERIOD_SECONDS: expected .*; JOB_MAX_UNCOUNTED_PODS: expected"):
        settings_of(Settings(), {"JOB_BATCH_PERIOD_SECONDS": "x", "JOB_MAX_UNCOUNTED_PODS": "x"})


def test_gang_scheduling_needs_its_other_gate() -> None:
    """Whether the file or the environment switches it on."""
    settings = Settings(job_controller=JobController(feature_gates={"WorkloadWithJob": True}))
    with pytest.raises(CannotStart, match="feature gates: WorkloadWithJob is on and needs GenericWorkload"):
        settings_of(settings, {})
    assert settings_of(settings, {"JOB_FEATURE_GATES": "GenericWorkload=true"}).gates == GANG
