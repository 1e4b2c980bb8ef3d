"""What others do to a mirror on its worker is respected or reported, never fought for ever (D3, D9)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from e2e.controlplane.client import MERGE_PATCH, Client, Json, StatusError
from e2e.jobs import (
    Scene,
    annotation,
    is_complete,
    is_suspended,
    job,
    placed_on,
    runs,
    until,
    waits_because,
)
from e2e.manager import ManagerProcess


async def test_a_mirror_that_the_worker_suspends_is_shown_as_suspended_and_left(
    shared_manager: ManagerProcess, scene: Scene
) -> None:
    """A queue on the worker holds it and lets it go when it likes; the source shows both (D9)."""
    await scene.create(job("queued", shared_manager.managed_by, run_for="never"))
    worker = placed_on(await scene.source_until("queued", runs()))
    client, path = scene.client_of(worker), f"{scene.jobs(worker)}/queued"

    await client.merge(path, {"spec": {"suspend": True}})
    shown = await scene.source_until("queued", is_suspended)
    await scene.until_no_pods(worker, "queued")
    held = await scene.mirror(worker, "queued")
    assert not shown["spec"]["suspend"]
    assert held is not None
    assert held["spec"]["suspend"] is True

    await client.merge(path, {"spec": {"suspend": False}})
    await scene.source_until("queued", runs())
    await scene.end_pods(worker, "queued")
    ended = await scene.source_until("queued", is_complete)
    assert not is_suspended(ended)
    await scene.only_event("queued", "Mirrored")


async def test_what_is_undone_on_the_worker_is_restored_twice_and_then_reported(
    shared_manager: ManagerProcess, scene: Scene
) -> None:
    """Two controllers must not fight over a label; the next change of the user's is carried again (D9)."""
    await scene.create(job("contested", shared_manager.managed_by, run_for="never", labels={"team": "a"}))
    worker = placed_on(await scene.source_until("contested", runs()))
    client, path = scene.client_of(worker), f"{scene.jobs(worker)}/contested"

    for turn in range(2):
        await client.merge(path, {"metadata": {"labels": {"team": f"theirs-{turn}"}}})
        await scene.mirror_until(worker, "contested", has_label("team", "a"))
    await client.merge(path, {"metadata": {"labels": {"team": "theirs-for-good"}}})
    told = await scene.source_until("contested", waits_because("reverts"))

    assert annotation(told, "waiting-because") == f"worker {worker} reverts changes to the mirror: metadata.labels"
    left = await scene.mirror(worker, "contested")
    assert has_label("team", "theirs-for-good")(left)
    assert (await scene.event("contested", "MirrorChanged"))["type"] == "Warning"

    await scene.patch("contested", {"metadata": {"labels": {"team": "b"}}})
    await scene.mirror_until(worker, "contested", has_label("team", "b"))
    await scene.source_until("contested", lambda found: not annotation(found, "waiting-because"))


async def test_a_resume_that_the_worker_refuses_is_told_and_the_mirror_stays_suspended(
    shared_manager: ManagerProcess, scene: Scene
) -> None:
    """The worker's admission has the last word; the source says who refuses and how (D3)."""
    await scene.create(job("refused", shared_manager.managed_by, run_for="never"))
    worker = placed_on(await scene.source_until("refused", runs()))
    await scene.patch("refused", {"spec": {"suspend": True}})
    await scene.mirror_until(worker, "refused", is_suspended)
    await scene.source_until("refused", is_suspended)
    await scene.until_no_pods(worker, "refused")

    async with nobody_resumes(scene, worker):
        await scene.patch("refused", {"spec": {"suspend": False}})
        told = await scene.source_until("refused", waits_because("rejected"))
        event = await scene.event("refused", "ChangeRefused")

    assert annotation(told, "waiting-because").startswith(f"worker {worker} rejected the change: ")
    assert event["message"] == annotation(told, "waiting-because")
    assert is_suspended(told)
    mirror = await scene.mirror(worker, "refused")
    assert mirror is not None
    assert mirror["spec"]["suspend"] is True


@asynccontextmanager
async def nobody_resumes(scene: Scene, worker: str) -> AsyncIterator[None]:
    """The worker's admission forbids to unsuspend Jobs in this scene's namespace, for as long as the block lasts."""
    client, name = scene.client_of(worker), f"no-resume-{scene.namespace}"
    group = "/apis/admissionregistration.k8s.io/v1"
    policies, bindings = f"{group}/validatingadmissionpolicies", f"{group}/validatingadmissionpolicybindings"
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["jobs"]}
    only_here = {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}}
    await client.create(
        policies,
        {
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": "!oldObject.spec.suspend || object.spec.suspend"}],
            },
        },
    )
    await client.create(
        bindings,
        {
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": only_here},
            },
        },
    )
    try:
        await client.create(scene.jobs(worker), job("probe", suspend=True))
        await until(lambda: is_forbidden(client, f"{scene.jobs(worker)}/probe"))
        yield
    finally:
        await client.delete(f"{bindings}/{name}")
        await client.delete(f"{policies}/{name}")


async def is_forbidden(client: Client, path: str) -> bool:
    """Whether the policy holds already: API servers take a moment."""
    try:
        await client.call("PATCH", f"{path}?dryRun=All", {"spec": {"suspend": False}}, MERGE_PATCH)
    except StatusError:
        return True
    return False


def has_label(key: str, value: str) -> Callable[[Json | None], bool]:
    """A question: does the object have this label?"""
    return lambda found: (found or {}).get("metadata", {}).get("labels", {}).get(key) == value
