"""Pods that the API server refuses (A8, A9, N-table)."""

from __future__ import annotations

from e2e.job_scenarios.bodies import indexed, job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has

_ON_THE_HOST = {"hostNetwork": True}
_ENFORCE = "pod-security.kubernetes.io/enforce"


@scenario("chain 13; Y18, A8; FailedCreate")
async def pod_security_refuses(stage: Stage) -> None:
    """One attempt each time, startTime is written; when it is allowed the pods come."""
    namespace = f"/api/v1/namespaces/{stage.namespace}"
    await stage.client.merge(namespace, {"metadata": {"labels": {_ENFORCE: "baseline"}}})
    await stage.create(job(completions=3, parallelism=3, pod=_ON_THE_HOST))
    await stage.until_event("FailedCreate", 2)
    async with stage.stimulus("allow it"):
        await stage.client.merge(namespace, {"metadata": {"labels": {_ENFORCE: "privileged"}}})
        await stage.pods(3)


@scenario("A8: some are created, then the quota is used up; too few active pods, with controller error")
async def a_quota_allows_some(stage: Stage) -> None:
    """One batch is refused in part: the rest waits; active shows what is there."""
    await _quota(stage, pods=2)
    await stage.create(indexed(2, 1))
    await stage.pods(1)
    await stage.change(parallelism=2)
    await stage.pods(2)


@scenario("A8: the quota is used up and grows")
async def a_quota_allows_one(stage: Stage) -> None:
    """The second pod is refused until the quota grows."""
    await _quota(stage, pods=1)
    await stage.create(indexed(2))
    await stage.until_event("FailedCreate")
    await stage.until(counts(active=1))
    async with stage.stimulus("more quota"):
        await _write_quota(stage, pods=5, used=1)
        await stage.pods(2)
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))


@scenario("A9, DF9: the namespace is going away", is_for_kills=False)
async def the_namespace_is_terminating(stage: Stage) -> None:
    """No event, and the pod counts as expected."""
    await stage.create(job(suspend=True, completions=2, parallelism=2))
    await stage.until_event("Suspended")
    async with stage.stimulus("the namespace goes, and the Job is resumed"):
        await stage.client.delete(f"/api/v1/namespaces/{stage.namespace}")
        await stage.resume()


@scenario("A8: a template that the server refuses")
async def a_template_that_no_pod_can_have(stage: Stage) -> None:
    """A priority class that does not exist: refused with the server's words."""
    await stage.create(job(pod={"priorityClassName": "nobody-made-it"}))
    await stage.until_event("FailedCreate", 2)


async def _quota(stage: Stage, *, pods: int) -> None:
    """A quota whose status nobody but the script computes: there is no quota controller."""
    path = f"/api/v1/namespaces/{stage.namespace}/resourcequotas"
    await stage.client.create(path, {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": str(pods)}}})
    await _write_quota(stage, pods=pods, used=0)


async def _write_quota(stage: Stage, *, pods: int, used: int) -> None:
    path = f"/api/v1/namespaces/{stage.namespace}/resourcequotas/quota"
    await stage.client.merge(path, {"spec": {"hard": {"pods": str(pods)}}})
    status = {"hard": {"pods": str(pods)}, "used": {"pods": str(used)}}
    await stage.client.merge(f"{path}/status", {"status": status})
