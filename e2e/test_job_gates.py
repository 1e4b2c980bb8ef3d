"""Feature gates turned off and on beside Jobs that were made before: each Job goes on as the versions without it did.

What upstream does is shown by kube-controller-manager itself wherever it can still have the gate off (by emulating an
older version); the gates that it has locked longer, and the one that it never had, are ours alone. The API server keeps
every gate on: it may be newer than its controllers.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
import pytest_asyncio

from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.job_controller import WITHOUT_JOBS, Flags, JobController, Kind
from e2e.jobs import Scene, condition, indexed, is_complete, is_failed, is_over, is_suspended, job, runs, until

QUICK = {"JOB_BATCH_PERIOD_SECONDS": "0.1", "JOB_POD_FAILURE_BACKOFF_SECONDS": "0.1"}
GATES = (
    "JobManagedBy",
    "JobPodReplacementPolicy",
    "JobSuccessPolicy",
    "JobBackoffLimitPerIndex",
    "MutableSchedulingDirectivesForSuspendedJobs",
    "MutablePodResourcesForSuspendedJobs",
    "PodFailurePolicyName",
)
RULE_NAMES = "pod-failure-policy-rule-names"
ON_42 = {"operator": "In", "values": [42]}
FAIL_ON_42 = {"rules": [{"action": "FailJob", "onExitCodes": ON_42}]}
IGNORE_42 = {"rules": [{"action": "Ignore", "onExitCodes": ON_42}]}
FINALIZER = "batch.kubernetes.io/job-tracking"
SLOW = {"stop-after": "100s"}
HERE = "here"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(binaries: None) -> AsyncIterator[Cluster]:
    """A cluster whose Jobs are run by what each test starts."""
    async with Cluster.start("gates", WITHOUT_JOBS) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def scene(cluster: Cluster) -> AsyncIterator[Scene]:
    """The Jobs of this test alone."""
    one = Scene(cluster, {HERE: cluster}, f"e2e-{uuid.uuid4().hex[:10]}")
    await one.make_namespace()
    yield one
    await one.remove_namespaces()
    await one.close()


def of_both(gate: str) -> pytest.MarkDecorator:
    """The test holds for each Job controller that can have this gate off."""
    return pytest.mark.parametrize("kind", [kind for kind in Kind if kind.knows_gate(gate)])


def running(cluster: Cluster, kind: Kind, *off: str, **constants: str) -> AbstractAsyncContextManager[JobController]:
    """The Job controller with these gates off."""
    flags = Flags(gates=dict.fromkeys(off, False), constants=QUICK | constants)
    return JobController.start(cluster, kind, flags)


@of_both("JobManagedBy")
async def test_without_managed_by_jobs_of_others_are_run_too(cluster: Cluster, scene: Scene, kind: Kind) -> None:
    """Off, the field means nothing; on again, a Job is left as it is, with the finalizers of its pods (Y3, J4, H1)."""
    other = f"example.com/{scene.namespace}"
    async with running(cluster, kind) as controller:
        await scene.create(job("short", other))
        await until(lambda: external(controller, other), lambda count: count == 1)
        await canary(scene, "while-on")
        assert status(await scene.source("short")) == {}

    async with running(cluster, kind, "JobManagedBy") as controller:
        ended = await scene.source_until("short", is_complete)
        assert [entry["type"] for entry in ended["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]
        await scene.create(job("long", other, run_for="never"))
        await scene.source_until("long", runs())
        assert await external(controller, other) == 0

    async with running(cluster, kind) as controller:
        assert await until(lambda: external(controller, other), lambda count: count == 2)
        [pod] = await scene.pods(HERE, "long")
        await delete_pod(scene, pod)
        await until(lambda: scene.pods(HERE, "long"), lambda pods: pods[0]["status"]["phase"] == "Failed")
        await canary(scene, "on-again")
        assert (await scene.pods(HERE, "long"))[0]["metadata"].get("finalizers") == [FINALIZER]
        assert runs()(await scene.source("long"))
        await scene.delete("long")  # only now is anything cleaned up
        await scene.until_no_pods(HERE, "long")


@of_both("JobPodReplacementPolicy")
async def test_without_replacement_policy_a_deleted_pod_has_failed_at_once(
    cluster: Cluster, scene: Scene, kind: Kind
) -> None:
    """Off, replacing does not wait for its end unless a failure policy says so; no status tells of it (R1, R2)."""
    async with running(cluster, kind):
        await scene.create(
            job("patient", run_for="never", pods=SLOW, backoffLimit=6, podReplacementPolicy="Failed"),
            job("judged", run_for="never", pods=SLOW, backoffLimit=6, podFailurePolicy=IGNORE_42),
        )
        for name in ("patient", "judged"):
            await scene.source_until(name, runs())
            await delete_pod(scene, (await scene.pods(HERE, name))[0])
            waiting = await scene.source_until(name, lambda found: status(found).get("terminating") == 1)
            assert "failed" not in waiting["status"]

    async with running(cluster, kind, "JobPodReplacementPolicy") as controller:
        replaced = await scene.source_until("patient", lambda found: runs()(found) and status(found).get("failed"))
        assert replaced["status"]["failed"] == 1
        assert "terminating" not in replaced["status"]
        assert len(await scene.pods(HERE, "patient")) == 2  # the first stops still
        judged = await scene.source_until("judged", lambda found: found and "terminating" not in status(found))
        assert "failed" not in judged["status"]
        assert len(await scene.pods(HERE, "judged")) == 1
        created = "job_controller_job_pods_creation_total"
        await until(controller.metrics, lambda found: found.value(created, reason="new", status="succeeded") == 1)

    async with running(cluster, kind):
        for name in ("patient", "judged"):
            await scene.source_until(name, lambda found: status(found).get("terminating") == 1)


async def test_without_both_gates_of_the_end_a_server_of_today_is_still_obeyed(cluster: Cluster, scene: Scene) -> None:
    """Off, ends have no interim condition; the server refuses that once, and has its way from then on (V18, V19)."""
    async with running(cluster, Kind.OURS, "JobManagedBy", "JobPodReplacementPolicy") as controller:
        await scene.create(job("first"))
        await scene.source_until("first", is_complete)
        await scene.create(job("second", exit_code=1, backoffLimit=0))
        failed = await scene.source_until("second", is_failed)
        assert [entry["type"] for entry in failed["status"]["conditions"]] == ["FailureTarget", "Failed"]
        assert controller.log.count("will try again") == 1


async def test_without_success_policy_only_completions_count(cluster: Cluster, scene: Scene) -> None:
    """Off, rules are not looked at and success has no reason; a verdict stored before stands (Z1, Y13-1)."""
    first = {"rules": [{"succeededIndexes": "0"}]}
    two = {"rules": [{"succeededCount": 2}]}
    async with running(cluster, Kind.OURS):
        await scene.create(
            indexed("met", run_for="never", pods=SLOW, successPolicy=first),
            indexed("not-yet", run_for="never", successPolicy=two),
        )
        await end_pod(scene, "met", 0)
        await end_pod(scene, "not-yet", 0)
        await scene.source_until("met", lambda found: condition(found, "SuccessCriteriaMet"))
        await scene.source_until("not-yet", lambda found: completed(found) == "0")

    async with running(cluster, Kind.OURS, "JobSuccessPolicy"):
        await end_pod(scene, "met", 1, code=1)
        await end_pod(scene, "met", 2, code=1)
        met = await scene.source_until("met", is_complete)
        assert condition(met, "Complete")["reason"] == "SuccessPolicy"
        assert condition(met, "Complete")["message"] == "Matched rules at index 0"

        await end_pod(scene, "not-yet", 1)
        counted = await scene.source_until("not-yet", lambda found: completed(found) == "0,1")
        assert "conditions" not in counted["status"]
        await end_pod(scene, "not-yet", 2)
        ended = await scene.source_until("not-yet", is_complete)
        assert {("SuccessCriteriaMet", None, None), ("Complete", None, None)} == {
            (entry["type"], entry.get("reason"), entry.get("message")) for entry in ended["status"]["conditions"]
        }

        await scene.create(indexed("late", run_for="never", successPolicy=first))
        await end_pod(scene, "late", 0)
        counted = await scene.source_until("late", lambda found: completed(found) == "0")
        assert "conditions" not in counted["status"]

    async with running(cluster, Kind.OURS):
        late = await scene.source_until("late", is_complete)
        assert condition(late, "Complete")["reason"] == "SuccessPolicy"


async def test_without_backoff_limit_per_index_failed_indexes_run_again(cluster: Cluster, scene: Scene) -> None:
    """Off, failures count for the whole Job, nothing is held back, FailIndex rules are passed over (L1–L7, F2)."""
    rules = [{"action": action, "onExitCodes": ON_42} for action in ("FailIndex", "Ignore")]
    async with running(cluster, Kind.OURS, JOB_POD_FAILURE_BACKOFF_SECONDS="100"):
        await scene.create(
            indexed("gave-up", completions=2, run_for="never", backoffLimit=6, backoffLimitPerIndex=0),
            indexed("held-back", completions=2, run_for="never", backoffLimit=6, backoffLimitPerIndex=3),
            indexed(
                "judged",
                completions=2,
                run_for="never",
                backoffLimit=6,
                backoffLimitPerIndex=1,
                podFailurePolicy={"rules": rules},
            ),
        )
        await end_pod(scene, "gave-up", 0, code=1)
        await end_pod(scene, "held-back", 0, code=1)
        await scene.source_until("judged", runs(2))
        await scene.source_until("gave-up", lambda found: status(found).get("failedIndexes") == "0")
        held = await scene.source_until("held-back", runs(1))
        assert held["status"].get("failed", 0) == 0  # counted when its replacement is there (L5)

    async with running(cluster, Kind.OURS, "JobBackoffLimitPerIndex"):
        await end_pod(scene, "judged", 0, code=42)
        await scene.source_until("judged", lambda found: found and "failedIndexes" not in status(found))
        for name in ("gave-up", "held-back"):
            again = await scene.source_until(name, lambda found: runs(2)(found) and status(found).get("failed"))
            assert again["status"]["failed"] == 1
            assert "failedIndexes" not in again["status"]
            pod = await running_pod(scene, name, 0)
            assert "batch.kubernetes.io/job-index-failure-count" not in pod["metadata"]["annotations"]
            await end_pod(scene, name, 0)
            await end_pod(scene, name, 1)
            assert completed(await scene.source_until(name, is_complete)) == "0,1"
        ignored = await scene.source_until("judged", runs(2))
        assert len(await scene.pods(HERE, "judged")) == 3  # the failed one is kept, as ever
        assert "failed" not in ignored["status"]

    async with running(cluster, Kind.OURS):
        back = await scene.source_until("judged", lambda found: status(found).get("failedIndexes") == "")
        assert runs(2)(back)
        await end_pod(scene, "judged", 0, code=42)
        await scene.source_until("judged", lambda found: status(found).get("failedIndexes") == "0")


@of_both("MutableSchedulingDirectivesForSuspendedJobs")
async def test_without_mutable_directives_a_suspended_job_keeps_its_start_time(
    cluster: Cluster, scene: Scene, kind: Kind
) -> None:
    """On, suspension clears it; off, only resuming changes it; either may resume what the other suspended (W3)."""
    gate = "MutableSchedulingDirectivesForSuspendedJobs"
    async with running(cluster, kind):
        await scene.create(job("first", run_for="never"))
        await scene.source_until("first", runs())
        await scene.patch("first", {"spec": {"suspend": True}})
        assert "startTime" not in (await scene.source_until("first", is_suspended))["status"]

    async with running(cluster, kind, gate):
        await scene.patch("first", {"spec": {"suspend": False}})
        assert (await scene.source_until("first", runs()))["status"]["startTime"]
        await scene.create(job("second", run_for="never"))
        before = await scene.source_until("second", runs())
        await scene.patch("second", {"spec": {"suspend": True}})
        suspended = await scene.source_until("second", is_suspended)
        assert before["status"]["startTime"] == suspended["status"]["startTime"]

    async with running(cluster, kind):
        await canary(scene, "on-again")
        untouched = await scene.source("second")
        assert untouched is not None
        assert before["status"]["startTime"] == untouched["status"]["startTime"]
        await scene.patch("second", {"spec": {"suspend": False}})
        resumed = await scene.source_until("second", runs())
        assert resumed["status"]["startTime"] >= before["status"]["startTime"]


@of_both("MutablePodResourcesForSuspendedJobs")
async def test_resources_changed_while_suspended_reach_the_pods_without_the_gate(
    cluster: Cluster, scene: Scene, kind: Kind
) -> None:
    """The gate is the API server's: what it has let through is the template, and pods are made from it (U6)."""
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "10m"}}}
    async with running(cluster, kind, "MutablePodResourcesForSuspendedJobs"):
        await scene.create(job("grown", run_for="never"))
        await scene.source_until("grown", runs())
        await scene.patch("grown", {"spec": {"suspend": True}})
        await scene.source_until("grown", lambda found: is_suspended(found) and not status(found).get("terminating"))
        await scene.patch("grown", {"spec": {"template": {"spec": {"containers": [container]}}}})
        await scene.patch("grown", {"spec": {"suspend": False}})
        await scene.source_until("grown", runs())
        pod = await running_pod(scene, "grown")
        assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "10m"}


async def test_without_rule_names_a_reason_that_is_stored_stays_and_new_ones_are_plain(
    cluster: Cluster, scene: Scene
) -> None:
    """Off, names are not looked at; FailureTarget with a name ends as Failed with it (RN2, RN4)."""
    named = {RULE_NAMES: json.dumps({"0": "OutOfMemory"})}
    two: Json = {"run_for": "never", "pods": SLOW, "parallelism": 2, "completions": 2, "podFailurePolicy": FAIL_ON_42}
    async with running(cluster, Kind.OURS):
        await scene.create(
            job("judged", annotations=named, **two), job("unnamed", exit_code=42, podFailurePolicy=FAIL_ON_42)
        )
        await scene.source_until("judged", runs(2))
        await end_pod(scene, "judged", code=42)
        target = await scene.source_until("judged", lambda found: condition(found, "FailureTarget"))
        assert condition(target, "FailureTarget")["reason"] == "PodFailurePolicy_OutOfMemory"
        assert not is_failed(target)
        unnamed = await scene.source_until("unnamed", is_failed)
        assert condition(unnamed, "Failed")["reason"] == "PodFailurePolicy"

    async with running(cluster, Kind.OURS, "PodFailurePolicyName"):
        await scene.create(job("plain", exit_code=42, annotations=named, podFailurePolicy=FAIL_ON_42))
        plain = await scene.source_until("plain", is_failed)
        assert condition(plain, "FailureTarget")["reason"] == "PodFailurePolicy"
        assert condition(plain, "Failed")["reason"] == "PodFailurePolicy"
        await end_pod(scene, "judged", code=1)
        judged = await scene.source_until("judged", is_failed)
        assert condition(target, "FailureTarget") == condition(judged, "FailureTarget")
        assert condition(judged, "Failed")["reason"] == "PodFailurePolicy_OutOfMemory"


async def test_jobs_end_with_every_gate_off(cluster: Cluster, scene: Scene) -> None:
    """The API server's rules of status stay on whatever the gates are: no Job waits for a write that is refused."""
    bodies = [
        job("good"),
        job("bad", exit_code=1),
        job("late", run_for="never", activeDeadlineSeconds=1),
        job("judged", exit_code=42, backoffLimit=6, podFailurePolicy=FAIL_ON_42),
        job("external", "example.com/nobody"),
        indexed("indexed", backoffLimit=1, backoffLimitPerIndex=0, successPolicy={"rules": [{"succeededCount": 3}]}),
    ]
    names = [body["metadata"]["name"] for body in bodies]
    async with running(cluster, Kind.OURS, *GATES):
        await scene.create(*bodies)
        ended = dict(zip(names, await scene.sources_until(names, is_over), strict=True))
    assert {"good", "external", "indexed"} == {name for name, found in ended.items() if is_complete(found)}
    reasons = {name: condition(found, "Failed")["reason"] for name, found in ended.items() if is_failed(found)}
    assert reasons == {"bad": "BackoffLimitExceeded", "late": "DeadlineExceeded", "judged": "PodFailurePolicy"}


async def test_the_environment_sets_gates_too(cluster: Cluster, scene: Scene) -> None:
    """For installations whose arguments are not ours to write."""
    flags = Flags(constants=QUICK | {"JOB_FEATURE_GATES": "JobManagedBy=false"})
    async with JobController.start(cluster, Kind.OURS, flags):
        await scene.create(job("external", "example.com/nobody"))
        await scene.source_until("external", is_complete)


async def external(controller: JobController, name: str) -> float:
    """How many Jobs it has seen added whose controller is the one of this name."""
    samples = await controller.metrics()
    return samples.value("job_controller_jobs_by_external_controller_total", controller_name=name)


async def canary(scene: Scene, name: str) -> None:
    """Run a Job, so that whatever the controller would have done to others by now is done."""
    await scene.create(job(name))
    await scene.source_until(name, is_complete)


def status(found: Json | None) -> Json:
    """Its status; empty if there is no Job."""
    return dict((found or {}).get("status", {}))


def completed(found: Json | None) -> str:
    """Its completed indexes."""
    return str(status(found).get("completedIndexes", ""))


async def delete_pod(scene: Scene, pod: Json) -> None:
    """Delete a pod as a user would."""
    path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}"
    await scene.client.delete(path)


async def running_pod(scene: Scene, name: str, index: int | None = None) -> Json:
    """A running pod of this Job and of this index, waited for; the newest if there are several."""

    async def look() -> list[Json]:
        pods = [pod for pod in await scene.pods(HERE, name) if pod["status"]["phase"] == "Running"]
        return [pod for pod in pods if index is None or index_of(pod) == index]

    found = await until(look, describe=lambda: scene.describe(name))
    return max(found, key=lambda pod: pod["metadata"]["creationTimestamp"])


def index_of(pod: Json) -> int:
    """Its completion index."""
    return int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])


async def end_pod(scene: Scene, name: str, index: int | None = None, *, code: int = 0) -> None:
    """End a pod of this Job, as its node would; its own annotations must let it run for ever."""
    pod = await running_pod(scene, name, index)
    now = pod["status"]["startTime"]
    terminated = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now, "finishedAt": now}
    status: Json = {
        "phase": "Failed" if code else "Succeeded",
        "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}],
        "containerStatuses": [
            {"name": "main", "image": "any", "imageID": "", "ready": False, "restartCount": 0, "started": False}
            | {"state": {"terminated": terminated}}
        ],
    }
    await scene.client.merge(
        f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}/status", {"status": status}
    )
