"""Gang scheduling (KEP-5547): on sides whose API servers have Workloads and PodGroups, with the gate on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from e2e.controlplane.client import Json, StatusError
from e2e.job_scenarios import scenario as registry
from e2e.job_scenarios.bodies import controlled_by, indexed, job
from e2e.job_scenarios.stage import Stage, has
from mirror.kube.resources import POD_GROUPS, WORKLOADS, Resource

scenario = partial(registry.scenario, has_gangs=True)

_GANG = {"gang": {"minCount": 2}}
_LONGEST_OF_UPSTREAMS = 57
"""Characters of the name of a Job that upstream can make a Workload for."""


@scenario("TestJobGangScheduling: eligible job creates workload and podgroup")
async def a_gang(stage: Stage) -> None:
    """Workload, PodGroup, then pods in it; they stay until the Job is deleted."""
    await stage.create(indexed(3))
    await stage.succeed(*await stage.pods(3))
    await stage.until(has("Complete"))


@scenario("TestJobGangScheduling: suspended job creates workload before pods")
async def a_suspended_gang(stage: Stage) -> None:
    """Its pods, each time that it runs, are of one PodGroup."""
    await stage.create(indexed(2, suspend=True))
    await stage.until_event("Suspended")
    await stage.resume()
    pods = await stage.pods(2)
    await stage.suspend()
    await stage.gone(*pods)
    await stage.resume()
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))


@scenario("TestJobGangScheduling: non-indexed job, parallelism=1, completions != parallelism")
async def jobs_that_are_no_gangs(stage: Stage) -> None:
    """Neither Workload nor PodGroup."""
    for name, body in (
        ("queue", job(name="queue", parallelism=2)),
        ("fixed", job(name="fixed", completions=2, parallelism=2)),
        ("one", indexed(1, name="one")),
        ("in-turn", indexed(3, 2, name="in-turn")),
    ):
        await stage.create(body)
        await stage.pods(1 if name == "one" else 2, name)


@scenario("TestJobGangScheduling: high-level controller owns scheduling objects via existing schedulingGroup")
async def a_gang_that_somebody_else_has_grouped(stage: Stage) -> None:
    """The template's group is the pods'."""
    await stage.create(indexed(2, pod={"schedulingGroup": {"podGroupName": "theirs"}}))
    await stage.pods(2)


@scenario("A failed index runs again in the same PodGroup", is_for_kills=False)
async def a_gang_that_loses_a_pod(stage: Stage) -> None:
    """No second PodGroup is created for it."""
    await stage.create(indexed(2))
    zero, one = await stage.pods(2)
    await stage.fail(zero)
    await stage.succeed(one)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("TestJobGangScheduling: controller restart preserves workload", has_outage=True)
async def a_gang_goes_on_after_an_outage(stage: Stage) -> None:
    """What was created before is found and used."""
    await stage.create(indexed(2))
    zero, one = await stage.pods(2)
    async with stage.outage():
        await stage.fail(zero)
        await stage.succeed(one)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("A Workload that refers to the Job and is not controlled by it")
async def a_workload_of_somebody_else(stage: Stage) -> None:
    """It is not used, and none beside it is created."""
    await _put(stage, WORKLOADS, "theirs", _workload("job", "workers"))
    await stage.create(indexed(2))
    await stage.pods(2)


@scenario("Two Workloads refer to the Job")
async def two_workloads(stage: Stage) -> None:
    """None is used."""
    for name in ("one", "other"):
        await _put(stage, WORKLOADS, name, _workload("job", "workers"))
    await stage.create(indexed(2))
    await stage.pods(2)


@scenario("A Workload that refers to a Job of another kind")
async def a_workload_of_another_kind(stage: Stage) -> None:
    """It is in nobody's way."""
    spec = _workload("job", "workers")
    spec["controllerRef"] = {"apiGroup": "example.com", "kind": "Job", "name": "job"}
    await _put(stage, WORKLOADS, "theirs", spec)
    await stage.create(indexed(2))
    await stage.pods(2)


@scenario("A Workload of the Job's own with two templates; one that is gone", is_for_kills=False)
async def a_workload_that_is_replaced(stage: Stage) -> None:
    """New pods are of no group."""
    made = await stage.create(indexed(3))
    zero, one, _ = await stage.pods(3)
    async with stage.stimulus("the Workload is deleted"):
        await _delete_all(stage, WORKLOADS)
    await stage.fail(zero)
    await stage.pods(3)
    async with stage.stimulus("another has two templates"):
        await _put(stage, WORKLOADS, "mine", _workload("job", "a", "b"), owner=controlled_by(made))
    await stage.fail(one)
    await stage.pods(3)


@scenario("A Workload of the Job's own, made by somebody else, with another policy")
async def a_workload_that_was_there_before(stage: Stage) -> None:
    """It is used as it is, and its policy is the PodGroup's."""
    made = await stage.create(indexed(2, suspend=True))
    await stage.until_event("Suspended")
    async with stage.stimulus("another Workload"):
        for resource in (POD_GROUPS, WORKLOADS):
            await _delete_all(stage, resource)
        spec = _workload("job", "workers")
        spec["podGroupTemplates"][0]["schedulingPolicy"] = {"basic": {}}
        await _put(stage, WORKLOADS, "mine", spec, owner=controlled_by(made))
    await stage.resume()
    await stage.pods(2)


@scenario("A PodGroup that is deleted while its pods run", is_for_kills=False)
async def a_pod_group_that_is_deleted(stage: Stage) -> None:
    """While it is protected it goes on; once it is gone, another is created."""
    await stage.create(indexed(2))
    zero, one = await stage.pods(2)
    async with stage.stimulus("deleted, and protected"):
        await _delete_all(stage, POD_GROUPS, is_forced=False)
    await stage.fail(zero)
    await stage.pods(2)
    async with stage.stimulus("gone"):
        await _delete_all(stage, POD_GROUPS)
    await stage.fail(one)
    await stage.pods(2)


@scenario("A PodGroup of somebody else refers to the Workload", is_for_kills=False)
async def two_pod_groups(stage: Stage) -> None:
    """Two are too many: new pods are of no group."""
    await stage.create(indexed(2))
    zero, _ = await stage.pods(2)
    (workload,) = await _all(stage, WORKLOADS)
    reference = {"workloadName": workload["metadata"]["name"], "podGroupTemplateName": "job-pgt-0"}
    async with stage.stimulus("a second PodGroup"):
        spec = {"podGroupTemplateRef": {"workload": reference}, "schedulingPolicy": _GANG}
        await _put(stage, POD_GROUPS, "theirs", spec)
    await stage.fail(zero)
    await stage.pods(2)


@scenario("The longest name of a template: 63 characters")
async def a_gang_with_a_long_name(stage: Stage) -> None:
    """As long as upstream's can be."""
    name = "j" * _LONGEST_OF_UPSTREAMS
    await stage.create(indexed(2, name=name))
    await stage.pods(2, name)


@scenario("The name of a template would be longer than 63 characters", is_for_kills=False)
async def a_gang_with_too_long_a_name(stage: Stage) -> None:
    """Upstream's Workload is refused, and the Job never runs."""
    name = "j" * (_LONGEST_OF_UPSTREAMS + 1)
    await stage.create(indexed(2, name=name))


@scenario("A Workload that a quota refuses, until it grows", is_for_kills=False)
async def a_quota_allows_no_workload(stage: Stage) -> None:
    """Neither pods nor a status before."""
    counted = f"count/{WORKLOADS.plural}.{WORKLOADS.group}"
    quotas = f"/api/v1/namespaces/{stage.namespace}/resourcequotas"
    await stage.client.create(quotas, {"metadata": {"name": "quota"}, "spec": {"hard": {counted: "0"}}})
    status = {"status": {"hard": {counted: "0"}, "used": {counted: "0"}}}
    await stage.client.merge(f"{quotas}/quota/status", status)
    await stage.create(indexed(2))
    async with stage.stimulus("no quota any more"):
        await stage.client.delete(f"{quotas}/quota")
        await stage.pods(2)


@scenario("A gang is deleted while it waits for its Workload to be deleted", is_for_kills=False)
async def a_gang_is_deleted(stage: Stage) -> None:
    """Nothing is created any more."""
    await stage.create(indexed(2))
    pods = await stage.pods(2)
    await stage.delete()
    await stage.gone(*pods)


def _workload(job_name: str, *templates: str) -> Json:
    return {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": job_name},
        "podGroupTemplates": [{"name": name, "schedulingPolicy": _GANG} for name in templates],
    }


async def _put(stage: Stage, resource: Resource, name: str, spec: Json, *, owner: Json | None = None) -> None:
    metadata: dict[str, Any] = {"name": name, "ownerReferences": [owner] if owner else []}
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    await stage.client.create(resource.path(stage.namespace), body)


async def _all(stage: Stage, resource: Resource) -> list[Json]:
    return await stage.client.list(resource.path(stage.namespace))


async def _delete_all(stage: Stage, resource: Resource, *, is_forced: bool = True) -> None:
    """Delete what there is of a kind; ``is_forced``: and take off the finalizers that would keep it."""
    for one in await _all(stage, resource):
        path = resource.path(stage.namespace, one["metadata"]["name"])
        if "deletionTimestamp" not in one["metadata"]:
            await stage.client.delete(path)
        if is_forced and one["metadata"].get("finalizers"):
            with _gone_is_fine():  # who protects what no pod uses takes its finalizer off, too
                await stage.client.merge(path, {"metadata": {"finalizers": None}})


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except StatusError as refused:
        if refused.status != HTTPStatus.NOT_FOUND:
            raise
