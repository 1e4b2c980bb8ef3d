"""Jobs and pods that a worker's admission does not let in: quotas, policies, webhooks, missing classes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

from e2e.controlplane.client import Json
from e2e.troubles.stage import JOB, Play, Sight, over, says
from e2e.troubles.webhooks import CREATED, Webhook, add_webhook, here, remove_webhook, until_no_job_is_created
from mirror.serving.x509 import Authority

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_ENFORCE = "pod-security.kubernetes.io/enforce"


def _with(resources: Json) -> list[Json]:
    return [{"name": "main", "image": "any", "resources": resources}]


async def quota_on_pods(play: Play) -> AsyncGenerator[Sight, None]:
    quota: Json = {"metadata": {"name": "team"}, "spec": {"hard": {"pods": "0"}}}
    await play.on().create(f"{play.core}/resourcequotas", quota)
    await play.create()
    yield Sight("A quota of the worker leaves no room for pods", says("QuotaExceeded"))
    await play.on().merge(f"{play.core}/resourcequotas/team", {"spec": {"hard": {"pods": "5"}}})
    yield over()


async def quota_on_jobs(play: Play) -> AsyncGenerator[Sight, None]:
    quota: Json = {"metadata": {"name": "team"}, "spec": {"hard": {"count/jobs.batch": "0"}}}
    await play.on().create(f"{play.core}/resourcequotas", quota)
    await play.create()
    yield Sight("A quota of the worker leaves no room for Jobs", says("RefusedByWorkers", "quota exceeded"))
    await play.on().delete(f"{play.core}/resourcequotas/team")
    yield over()


async def limit_range(play: Play) -> AsyncGenerator[Sight, None]:
    limit: Json = {"type": "Container", "max": {"cpu": "1"}}
    await play.on().create(f"{play.core}/limitranges", {"metadata": {"name": "team"}, "spec": {"limits": [limit]}})
    await play.create(containers=_with({"limits": {"cpu": "2"}}))
    yield Sight("A LimitRange of the worker forbids the pods", says("PodsForbidden", "maximum cpu usage"))
    await play.on().delete(f"{play.core}/limitranges/team")
    yield over()


async def pod_security(play: Play) -> AsyncGenerator[Sight, None]:
    await play.on().merge(play.core, {"metadata": {"labels": {_ENFORCE: "restricted"}}})
    await play.create()
    yield Sight("Pod security on the worker forbids the pods", says("PodsForbidden", "violates PodSecurity"))
    await play.on().merge(play.core, {"metadata": {"labels": {_ENFORCE: None}}})
    yield over()


async def account_missing(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(serviceAccountName="trainer")
    yield Sight("A ServiceAccount is not on the worker", says("PodsForbidden", "trainer"))
    await play.on().create(f"{play.core}/serviceaccounts", {"metadata": {"name": "trainer"}})
    yield over()


async def priority_class_missing(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(priorityClassName="urgent")
    yield Sight("A PriorityClass is not on the worker", says("PodsForbidden", "urgent"))
    await play.on().create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "urgent"}, "value": 10})
    yield over()


async def runtime_class_missing(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(runtimeClassName="gvisor")
    yield Sight("A RuntimeClass is not on the worker", says("PodsForbidden", "gvisor"))
    await play.on().create("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "gvisor"}, "handler": "runsc"})
    yield over()


async def policy_refuses(play: Play) -> AsyncGenerator[Sight, None]:
    rule = {
        "expression": "has(object.metadata.labels) && 'team' in object.metadata.labels",
        "message": "a Job needs the label team",
    }
    match = {"resourceRules": CREATED, "namespaceSelector": here(play)}
    policy = {"failurePolicy": "Fail", "matchConstraints": match, "validations": [rule]}
    name = {"metadata": {"name": "jobs-need-a-team"}}
    await play.on().create(f"{_ADMISSION}/validatingadmissionpolicies", {**name, "spec": policy})
    binding = {"policyName": "jobs-need-a-team", "validationActions": ["Deny"]}
    await play.on().create(f"{_ADMISSION}/validatingadmissionpolicybindings", {**name, "spec": binding})
    await until_no_job_is_created(play)
    await play.create()
    yield Sight("A policy of the worker refuses the Job", says("RefusedByWorkers", "jobs-need-a-team"))
    await play.scene.patch("train", {"metadata": {"labels": {"team": "a"}}})
    yield over()


async def webhook_refuses(play: Play) -> AsyncGenerator[Sight, None]:
    async with Webhook.serving(403, "jobs are frozen until Monday") as webhook:
        await add_webhook(play, webhook.url, webhook.authority)
        await until_no_job_is_created(play)
        await play.create()
        yield Sight("A webhook on the worker refuses the Job", says("RefusedByWorkers", "freeze.example.com"))
        webhook.allows = True
        yield over()


async def webhook_away(play: Play) -> AsyncGenerator[Sight, None]:
    await add_webhook(play, "https://127.0.0.1:9/", Authority.new("webhook", now=datetime.now(UTC)).certificate)
    await until_no_job_is_created(play)
    await play.create()
    yield Sight("A webhook on the worker does not answer", says("MirrorRefused", "webhook"))
    await remove_webhook(play)
    yield over()


async def no_room_for_annotations(play: Play) -> AsyncGenerator[Sight, None]:
    """An API server takes 256 KiB of them, and a copy has one more."""
    notes = {"example.com/notes": "x" * (256 * 1024 - 260)}
    body = play.job()
    body["metadata"]["annotations"] |= notes
    await play.create(body)
    yield Sight("Annotations leave no room for a further one", says("RefusedByWorkers", "metadata.annotations"))
    await play.scene.patch(JOB, {"metadata": {"annotations": dict.fromkeys(notes)}})
    yield over()


STORIES = (
    quota_on_jobs, no_room_for_annotations, policy_refuses, webhook_refuses, webhook_away, quota_on_pods, limit_range,
    pod_security, account_missing, priority_class_missing, runtime_class_missing,
)  # fmt: skip
