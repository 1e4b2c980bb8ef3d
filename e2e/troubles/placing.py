"""Jobs that get no worker."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping

from e2e.controlplane.client import Json
from e2e.jobs import job, placed_on
from e2e.troubles.stage import JOB, Play, Sight, over, progresses, says, told
from e2e.troubles.webhooks import Webhook, add_webhook, until_no_job_is_created
from mirror.model import names

ON_WEST: Mapping[str, str] = {"worker-selector": "region=us"}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def selector_misspelt(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(annotations={"worker-selector": "region=ue"}))
    yield Sight("The selector matches no worker", says("NoMatchingWorker"))
    await play.scene.patch(JOB, {"metadata": {"annotations": {names.WORKER_SELECTOR: "region=eu"}}})
    yield over()


async def selector_malformed(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(annotations={"worker-selector": "region in eu"}))
    yield Sight("The selector cannot be read", says("InvalidAnnotation"))
    await play.scene.patch(JOB, {"metadata": {"annotations": {names.WORKER_SELECTOR: "region in (eu)"}}})
    yield over()


async def annotation_misspelt(play: Play) -> AsyncGenerator[Sight, None]:
    """It means nothing, so the Job runs, on whichever worker."""
    await play.create(play.job(annotations={"worker-selector": "region=eu", "carrry": "configmaps"}))
    await play.scene.event(JOB, "UnknownAnnotation")
    yield Sight("An annotation is misspelt", placed_on)
    await play.create_anew()
    yield over(lambda found: placed_on(found) and progresses(found))


async def namespace_missing(play: Play) -> AsyncGenerator[Sight, None]:
    await play.on().delete(play.core)
    await play.on().wait_until(play.core, lambda found: found is None)
    await play.create()
    yield Sight("The namespace is not on the worker", says("RefusedByWorkers", "namespace"))
    await play.on().create("/api/v1/namespaces", {"metadata": {"name": play.namespace}})
    yield over()


async def namespace_going(play: Play) -> AsyncGenerator[Sight, None]:
    kept = {"name": "kept", "finalizers": ["example.com/archive"]}
    await play.on().create(f"{play.core}/configmaps", {"metadata": kept})
    await play.on().delete(play.core)
    await play.create()
    yield Sight("The namespace is being deleted on the worker", says("RefusedByWorkers", "is being deleted"))
    await play.on().merge(f"{play.core}/configmaps/kept", {"metadata": {"finalizers": None}})
    await play.on().wait_until(play.core, lambda found: found is None)
    await play.on().create("/api/v1/namespaces", {"metadata": {"name": play.namespace}})
    yield over()


async def manager_misspelt(play: Play) -> AsyncGenerator[Sight, None]:
    """It is nobody's Job, and no condition can say so."""
    body = play.job()
    body["spec"]["managedBy"] = "jobmirror.io/controler"
    await play.create(body)
    await play.scene.event(JOB, "UnknownManagedBy", seconds=180)
    yield Sight("`spec.managedBy` is misspelt", lambda found: found is not None)
    await play.create_anew()
    yield over(lambda found: placed_on(found) and progresses(found))


async def namespace_not_accepted(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(annotations=ON_WEST))
    yield Sight("The worker takes no Jobs of this namespace", says("NamespaceNotAccepted"))
    await play.scene.patch(JOB, {"metadata": {"annotations": {names.WORKER_SELECTOR: "region=eu"}}})
    yield over()


async def kubeconfig_refused(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(annotations={"worker-selector": "name=broken"}))
    yield Sight(
        "A worker's Secret has no usable kubeconfig",
        says("WorkersMisconfigured", "kubeconfig refused: current-context"),
    )
    await play.scene.patch(JOB, {"metadata": {"annotations": {names.WORKER_SELECTOR: "region=eu"}}})
    yield over()


async def on_west(play: Play) -> AsyncGenerator[Sight, None]:
    """One after the other, since each concerns the whole worker: full, cordoned, without a right, overloaded."""
    async with play.stage.west:
        await play.scene.create(job("first", names.DEFAULT_MANAGED_BY, run_for="never", annotations=ON_WEST))
        await play.scene.source_until("first", placed_on)
        await play.create(play.job(annotations=ON_WEST))
        yield Sight("All workers are full", says("WorkersFull"))
        await play.scene.delete("first")
        yield over()

        await play.clear()
        await play.stage.manager.annotate_worker("west", {"cordoned": "true"})
        await play.scene.until_jobs_wait(names.DEFAULT_MANAGED_BY, "cordoned", {names.WORKER_SELECTOR: "region=us"})
        await play.create(play.job(annotations=ON_WEST))
        yield Sight("All workers are cordoned", says("WorkersCordoned"))
        await play.stage.manager.annotate_worker("west", {"cordoned": None})
        yield over()

        await play.clear()
        role = f"{_RBAC}/clusterroles/jobmirror-worker-{play.stage.manager.namespace}"
        before = await play.on("west").get(role)
        await play.on("west").merge(role, {"rules": [*_without_create(before["rules"])]})
        await play.create(play.job(annotations=ON_WEST))
        yield Sight("A right is missing on the worker", says("RefusedByWorkers", "to create jobs"))
        await play.on("west").merge(role, {"rules": before["rules"]})
        yield over()

        await play.clear()
        async with Webhook.serving(429, "the cluster is busy") as webhook:
            await add_webhook(play, webhook.url, webhook.authority, worker="west")
            await until_no_job_is_created(play, "west")
            await play.create(play.job(annotations=ON_WEST))
            yield told("MirrorNotCreated", "worker west: the copy cannot be created: ")
            webhook.allows = True
            yield over()
        await play.clear()


def _without_create(rules: list[Json]) -> Iterator[Json]:
    for rule in rules:
        if verbs := [verb for verb in rule["verbs"] if verb != "create"]:
            yield {**rule, "verbs": verbs}


STORIES = (
    selector_misspelt, selector_malformed, annotation_misspelt, on_west, namespace_missing, namespace_going,
    namespace_not_accepted, kubeconfig_refused, manager_misspelt,
)  # fmt: skip
