"""The webhook beside a real API server: Jobs without ``managedBy`` that are claimed, held, placed and run (D16).

The manager's certificate is its own, and the manager tells the API server whom to trust. A control plane on this
machine has no Services, so the configurations name a URL; all else of them is what is shipped.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import MANAGEMENT
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, annotation, condition, is_complete, job, placed_on, uid
from e2e.manager import ManagerProcess
from e2e.manifests import charted
from e2e.ports import reserved_port
from e2e.serving import https_at

SHIPPED = Path(__file__).resolve().parents[1] / "config/webhook.yaml"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
PLURALS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
LABEL = "jobmirror.io/webhook"
LOOK_SECONDS = 0.1
MOST_SECONDS = 30


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def home(binaries: None) -> AsyncIterator[Cluster]:
    """A management cluster of this module's own: its webhooks are nobody else's."""
    async with Cluster.start("hooked", MANAGEMENT) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def scene(home: Cluster, east: ControlPlane, fresh_namespace: str) -> AsyncIterator[Scene]:
    """A chosen namespace at home, and the same one in the east."""
    one = Scene(home, {"east": east}, fresh_namespace)
    await one.make_namespace()
    async with home.client() as client:
        await client.merge(f"/api/v1/namespaces/{fresh_namespace}", {"metadata": {"labels": {LABEL: "enabled"}}})
    yield one
    await one.remove_namespaces()
    await one.close()


@asynccontextmanager
async def hooked(
    home: Cluster, east: ControlPlane, *, failure_policy: str = "Fail", kinds: Sequence[str] = ()
) -> AsyncIterator[tuple[ManagerProcess, int]]:
    """A manager that answers the webhook, and an API server that asks it, once it trusts it."""
    with reserved_port() as port:
        async with home.client() as client:
            try:
                await configure(client, port, failure_policy, kinds)
                settings = {**settings_with(port), "kinds": list(kinds)}
                async with ManagerProcess.start(home, {"east": east}, settings=settings) as manager:
                    await until_trusted(client)
                    yield manager, port
            finally:
                for plural in PLURALS:
                    await client.delete(f"{CONFIGURATIONS}/{plural}/jobmirror")


def settings_with(port: int) -> Json:
    """A manager that answers on this port."""
    return {"webhook": {"enabled": True}, "https": https_at(f"127.0.0.1:{port}")}


async def configure(client: Client, port: int, failure_policy: str, kinds: Sequence[str] = ()) -> None:
    """What is shipped, with a URL in the place of the Service, and as much time as an API server gives.

    Args:
        client: of the management cluster.
        port: where the manager answers.
        failure_policy: of the mutating webhooks.
        kinds: that it is asked about beside Jobs, as the chart has them.
    """
    bodies = yaml.safe_load_all(SHIPPED.read_text())
    if kinds:
        chart = charted({"config": {"kinds": list(kinds), "webhook": {"enabled": True}}})
        bodies = (one for one in chart if one["kind"].endswith("WebhookConfiguration"))
    for body in bodies:
        for webhook in body["webhooks"]:
            path = webhook["clientConfig"].pop("service")["path"]
            webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{path}"
            webhook["timeoutSeconds"] = MOST_SECONDS
            if body["kind"].startswith("Mutating"):
                webhook["failurePolicy"] = failure_policy
        await client.create(f"{CONFIGURATIONS}/{body['kind'].lower()}s", body)


async def bundles(client: Client) -> set[bytes]:
    found = set()
    for plural in PLURALS:
        body = await client.get(f"{CONFIGURATIONS}/{plural}/jobmirror")
        for webhook in body["webhooks"]:
            found.add(base64.b64decode(webhook["clientConfig"].get("caBundle", "")))
    return found


async def until_trusted(client: Client, *, other_than: bytes = b"") -> bytes:
    """Until every webhook has the manager's authority, and the API server has heard of it."""
    async with asyncio.timeout(180):
        while True:
            found = await bundles(client)
            if len(found) == 1 and b"" not in found and other_than not in (found or {b""}):
                break
            await asyncio.sleep(LOOK_SECONDS)
        while True:  # a dry run has the webhooks called, too
            try:
                await client.call("POST", "/apis/batch/v1/namespaces/default/jobs?dryRun=All", chosen("probe"))
                return found.pop()
            except StatusError as error:
                if "failed calling webhook" not in str(error):
                    raise
            await asyncio.sleep(LOOK_SECONDS)


def chosen(name: str) -> Json:
    """A user's Job that asks for us by its label."""
    return job(name, labels={LABEL: "enabled"})


def shown_certificate(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port))


async def test_a_users_job_is_held_placed_released_and_run_elsewhere(
    home: Cluster, east: ControlPlane, scene: Scene
) -> None:
    """The answer to the user's create shows it held; nobody but us and the worker's controller has its pods."""
    async with hooked(home, east) as (manager, _):
        made = (await scene.create(job("train")))[0]
        assert made["spec"]["managedBy"] == manager.managed_by
        assert made["spec"]["suspend"] is True
        assert annotation(made, "held") == "true"
        ended = await scene.source_until("train", is_complete)
        assert uid(ended) == uid(made)
        assert placed_on(ended) == "east"
        assert ended["spec"]["suspend"] is False
        assert annotation(ended, "held") == ""
        pods = await scene.client.list(f"/api/v1/namespaces/{scene.namespace}/pods")
        assert pods == []


async def test_what_a_cronjob_makes_is_claimed_too(home: Cluster, east: ControlPlane, scene: Scene) -> None:
    """It was written for the built-in controller; its Jobs run elsewhere, and the CronJob sees them end."""
    cronjobs = f"/apis/batch/v1/namespaces/{scene.namespace}/cronjobs"
    due = datetime.now(UTC) - timedelta(minutes=2)  # and then not before a day has gone
    spec: Json = {"schedule": f"{due.minute} {due.hour} * * *", "timeZone": "Etc/UTC", "concurrencyPolicy": "Forbid"}
    body: Json = {"metadata": {"name": "nightly"}, "spec": {**spec, "jobTemplate": {"spec": job("any")["spec"]}}}
    missed = {"status": {"lastScheduleTime": f"{due - timedelta(days=1):%Y-%m-%dT%H:%M:00Z}"}}
    async with hooked(home, east) as (manager, _):
        await scene.client.create(cronjobs, body)
        await scene.client.merge(f"{cronjobs}/nightly/status", missed)  # it catches up at once
        seen = await scene.client.wait_until(
            f"{cronjobs}/nightly", lambda found: (found or {}).get("status", {}).get("lastSuccessfulTime")
        )
        assert not seen["status"].get("active")
        made = (await scene.client.list(scene.jobs()))[0]
        assert made["spec"]["managedBy"] == manager.managed_by
        assert placed_on(made) == "east"


async def test_who_is_not_chosen_is_left_alone(home: Cluster, east: ControlPlane, scene: Scene) -> None:
    """By namespace or by label; a chosen namespace can be left by one Job; an explicit wish is never changed."""
    async with hooked(home, east) as (manager, _), home.client() as client:
        elsewhere = "/apis/batch/v1/namespaces/default/jobs"
        plain = await client.create(elsewhere, job("plain"))
        labelled = await client.create(elsewhere, chosen("labelled"))
        left = (await scene.create(job("left", labels={LABEL: "disabled"})))[0]
        own = (await scene.create(job("own", "kubernetes.io/job-controller")))[0]
        paused = (await scene.create(job("paused", suspend=True)))[0]
        assert [one["spec"].get("managedBy") for one in (plain, labelled, left, own, paused)] == [
            None,
            manager.managed_by,
            None,
            "kubernetes.io/job-controller",
            manager.managed_by,
        ]
        assert [one["spec"].get("suspend") for one in (plain, labelled, left, own, paused)] == [
            False,
            True,
            False,
            False,
            True,
        ]
        assert annotation(paused, "held") == ""
        for name in ("plain", "labelled"):
            await client.delete(f"{elsewhere}/{name}")


async def test_a_bad_annotation_is_refused_in_our_words(home: Cluster, east: ControlPlane, scene: Scene) -> None:
    """At once, at the create, naming the annotation; also by a later change."""
    async with hooked(home, east):
        with pytest.raises(
            StatusError, match=r"annotation jobmirror.io/worker-selector: .*write a label selector such as"
        ):
            await scene.create(job("train", annotations={"worker-selector": "region=(eu"}))
        await scene.create(job("train", annotations={"worker-selector": "region=far"}))
        await scene.source_until("train", lambda found: bool(condition(found, "Suspended")))
        bad = {"metadata": {"annotations": {"jobmirror.io/on-mirror-loss": "Pray"}}}
        with pytest.raises(StatusError, match="'Pray' is unknown; write Fail or Recreate"):
            await scene.patch("train", bad)
        good = {"metadata": {"annotations": {"jobmirror.io/worker-selector": "name=east"}}}
        await scene.patch("train", good)
        await scene.source_until("train", is_complete)


async def test_while_it_is_down_fail_refuses_new_jobs(home: Cluster, east: ControlPlane, scene: Scene) -> None:
    """Nothing slips through; what exists goes on, may be changed and deleted; other namespaces notice nothing."""
    async with hooked(home, east) as (manager, _):
        await scene.create(job("before", run_for="never"))
        await scene.source_until("before", lambda found: placed_on(found or {}) == "east")
        await manager.stop()
        with pytest.raises(StatusError, match="failed calling webhook"):
            await scene.create(job("train"))
        async with home.client() as client:
            elsewhere = "/apis/batch/v1/namespaces/default/jobs"
            await client.create(elsewhere, job("plain"))
            await client.delete(f"{elsewhere}/plain")
        change = {"metadata": {"annotations": {"jobmirror.io/on-mirror-loss": "Pray"}}}
        await scene.patch("before", change)
        await scene.delete("before")
        manager.launch()
        await manager.wait_until_ready()
        async with home.client() as client:
            await until_trusted(client)
        await scene.create(job("train"))
        await scene.source_until("train", is_complete)


async def test_while_it_is_down_ignore_lets_jobs_run_here(home: Cluster, east: ControlPlane, scene: Scene) -> None:
    """The built-in controller takes them, for good: managedBy cannot be given later."""
    async with hooked(home, east, failure_policy="Ignore") as (manager, _):
        await manager.stop()
        made = (await scene.create(job("train")))[0]
        assert "managedBy" not in made["spec"]
        await scene.source_until("train", lambda found: (found or {}).get("status", {}).get("active") == 1)
        manager.launch()
        await manager.wait_until_ready()
        assert placed_on(await scene.source("train")) == ""


@pytest.fixture
def other_port() -> Iterator[int]:
    """For a second manager."""
    with reserved_port() as port:
        yield port


async def test_a_replica_that_stands_by_answers_too(
    home: Cluster, east: ControlPlane, scene: Scene, other_port: int
) -> None:
    """With the same authority; here the API server asks nobody else."""
    async with hooked(home, east) as (leader, _), home.client() as client:
        (authority,) = await bundles(client)
        settings = settings_with(other_port)
        async with ManagerProcess.start(home, identity=leader.identity, settings=settings) as standby:
            assert "standby" in (await standby.fetch("/readyz"))[1]
            for plural in PLURALS:
                await client.delete(f"{CONFIGURATIONS}/{plural}/jobmirror")
            await configure(client, other_port, "Fail")
            assert await until_trusted(client) == authority
            await scene.create(job("train"))
            ended = await scene.source_until("train", is_complete)
            assert ended["spec"]["managedBy"] == leader.managed_by
            samples = await standby.metrics()
            assert samples.value("jobmirror_webhook_answers_total", hook="mutate", answer="allowed") >= 1


async def test_a_new_authority_is_served_and_trusted_without_a_restart(
    home: Cluster, east: ControlPlane, scene: Scene
) -> None:
    """An operator deletes the Secret: a new authority, a new certificate, caBundle, and the same process."""
    async with hooked(home, east) as (manager, port), home.client() as client:
        (authority,) = await bundles(client)
        pid, shown = manager.pid, await asyncio.to_thread(shown_certificate, port)
        await client.delete(f"/api/v1/namespaces/{manager.namespace}/secrets/jobmirror-https")
        await until_trusted(client, other_than=authority)
        assert await asyncio.to_thread(shown_certificate, port) != shown
        assert manager.pid == pid
        await scene.create(job("train"))
        await scene.source_until("train", is_complete)
