"""The webhook as an API server meets it: over HTTPS, with the configurations that are shipped, and while it is down."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from doubles.jobs import Body, job
from doubles.loglines import Lines
from doubles.transport import Wire, client_of, wire_to
from hypothesis import given
from hypothesis import strategies as st
from webhook_asking import UID, review

from mirror.app import _build
from mirror.connecting import Connections
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.http_services import http_services
from mirror.model import names
from mirror.planes.api import Api
from mirror.runtime.clock import SystemClock
from mirror.runtime.environment import Environment
from mirror.serving import https
from mirror.serving.certificates import Certificates, Material
from mirror.serving.x509 import Authority, client_context
from mirror.settings.schema import Https, Settings, Webhook, Workers
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.webhook import reviews, routes
from mirror.webhook.bundles import Bundles
from mirror.webhook.reviews import BadReview

SHIPPED = Path(__file__).parents[2] / "config/webhook.yaml"
AUTHORITY = Authority.new("test", now=datetime.now(UTC))
HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
TEAM, OTHER = (f"/apis/batch/v1/namespaces/{name}/jobs" for name in ("team", "other"))


class Given:
    """A source with one certificate."""

    every_seconds = 3600.0

    async def look(self) -> Material:
        return Material(AUTHORITY.issue_server(["127.0.0.1"]), AUTHORITY.certificate)


class Hooked:
    """An API server that asks, and the metrics of who answers."""

    def __init__(self, wire: Wire, certificates: Certificates, port: int) -> None:
        self.wire = wire
        self.api = Api(wire.server.inner)
        self.certificates = certificates
        self.port = port
        self.metrics = Metrics()

    async def configure(self, *, failure_policy: str = "Fail", trusts: bytes = AUTHORITY.certificate) -> None:
        """As it is shipped, with a URL in place of the Service."""
        for body in yaml.safe_load_all(SHIPPED.read_text()):
            kind = "mutating" if body["kind"].startswith("Mutating") else "validating"
            for webhook in body["webhooks"]:
                path = webhook["clientConfig"].pop("service")["path"]
                webhook["clientConfig"]["url"] = f"https://127.0.0.1:{self.port}{path}"
                if trusts:
                    webhook["clientConfig"]["caBundle"] = base64.b64encode(trusts).decode()
                if kind == "mutating":
                    webhook["failurePolicy"] = failure_policy
            await self.api.create(HOOKS.format(kind), body)

    async def bundles(self) -> list[bytes]:
        """What is trusted, of every webhook."""
        found = [await self.api.get(HOOKS.format(kind) + "/jobmirror") for kind in ("mutating", "validating")]
        configs = [webhook["clientConfig"] for body in found for webhook in body["webhooks"]]
        return [base64.b64decode(config.get("caBundle", "")) for config in configs]

    def answers(self, hook: str, answer: str) -> float:
        name = "jobmirror_webhook_answers_total"
        return self.metrics.registry.get_sample_value(name, {"hook": hook, "answer": answer}) or 0.0


@asynccontextmanager
async def hooked(*, is_down: bool = False) -> AsyncIterator[Hooked]:
    """A namespace ``team`` that is chosen, and ``other``; while it is down nobody listens on the port."""
    certificates = Certificates(Given(), log=get_log("test"))
    await certificates.load()
    found = Hooked(wire_to("management"), certificates, 0)
    found.wire.server.put("namespaces", {"metadata": {"name": "team", "labels": {"jobmirror.io/webhook": "enabled"}}})
    found.wire.server.put("namespaces", {"metadata": {"name": "other"}})
    app = https.application(
        routes.routes(names.DEFAULT_MANAGED_BY, count=found.metrics.on_webhook, log=get_log("webhook"))
    )
    async with https.serve_https(("127.0.0.1", 0), app, certificates) as found.port:
        if not is_down:
            yield found
    if is_down:
        yield found


def users(name: str = "train", **more: Any) -> Body:
    body = job(name, managed_by=None, **more)
    del body["metadata"]["namespace"]
    return body


def is_claimed(made: Body) -> bool:
    marked = made["metadata"].get("annotations", {}).get(names.HELD) == "true"
    facts = (made["spec"].get("managedBy") == names.DEFAULT_MANAGED_BY, made["spec"]["suspend"], marked)
    assert len(set(facts)) == 1, facts
    return marked


async def test_jobs_are_chosen_by_namespace_and_by_label() -> None:
    """With the configurations that are shipped; a Job may leave a chosen namespace."""
    on, off = {"jobmirror.io/webhook": "enabled"}, {"jobmirror.io/webhook": "disabled"}
    async with hooked() as it:
        await it.configure()
        assert is_claimed(await it.api.create(TEAM, users("a")))
        assert is_claimed(await it.api.create(TEAM, users("b", labels=on)))
        assert is_claimed(await it.api.create(OTHER, users("c", labels=on)))
        assert not is_claimed(await it.api.create(OTHER, users("d")))
        assert not is_claimed(await it.api.create(TEAM, users("e", labels=off)))
        assert it.answers("mutate", "allowed") == 3
        assert it.answers("validate", "allowed") == 5


async def test_a_dry_run_is_answered_and_leaves_nothing() -> None:
    """No side effects: the API server may ask."""
    async with hooked() as it:
        await it.configure()
        assert is_claimed(await it.api.call("POST", TEAM, users(), dryRun="All"))
        assert await it.api.list(TEAM) == []


async def test_bad_annotations_are_refused_with_our_text() -> None:
    """On create and on change; a status or a Job of others is not looked at."""
    bad = {names.WORKER_SELECTOR: "region=(eu"}
    async with hooked() as it:
        await it.configure()
        with pytest.raises(StatusError, match=r"annotation jobmirror\.io/worker-selector") as refused:
            await it.api.create(TEAM, users(annotations=bad))
        assert refused.value.status["code"] == 422
        await it.api.create(TEAM, users())
        with pytest.raises(StatusError, match=r"annotation jobmirror\.io/worker-selector"):
            await it.api.merge(f"{TEAM}/train", {"metadata": {"annotations": bad}})
        await it.api.create(OTHER, users(annotations=bad))
        assert it.answers("validate", "denied") == 2


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("Reschedule", ""),
        ("Fence", "Fence is not allowed here for a Job; write Wait or Reschedule"),
        ("Pray", "'Pray' is unknown; write Wait or Reschedule"),
    ],
)
async def test_the_settings_of_a_manager_say_which_policies_its_webhook_takes(
    policy: str, says: str, tmp_path: Path, log_lines: Lines
) -> None:
    """``workers.onLossAllowed`` (D14), as the manager serves its webhook."""
    pair = AUTHORITY.issue_server(["127.0.0.1"])
    files = {"cert_file": tmp_path / "tls.crt", "key_file": tmp_path / "tls.key"}
    for path, content in zip(files.values(), (pair.certificate, pair.key), strict=True):
        path.write_bytes(content)
    settings = Settings(
        webhook=Webhook(enabled=True),
        https=Https(listen="127.0.0.1:0", **{name: str(path) for name, path in files.items()}),
        workers=Workers(on_loss_allowed=("Wait", "Reschedule")),
    )
    management = client_of(wire_to("management"))
    environment = Environment(SystemClock(), get_log("test"), Metrics())
    manager = await _build(Connections(settings, environment.metrics), management, environment)
    async with http_services(settings, management, manager, on_page=lambda port: None):
        (address,) = [line["listen"] for line in log_lines if line["event"] == "serving"]
        asked = job(annotations={names.ON_WORKER_LOSS: policy})
        status, answer = await post(int(address.rpartition(":")[2]), review(asked), routes.VALIDATE)
    await management.close()
    response = json.loads(answer)["response"]
    assert (status, response["allowed"]) == (200, not says)
    assert response.get("status", {}).get("message", "").endswith(says)


async def test_while_it_is_down_fail_refuses_new_jobs_and_nothing_else() -> None:
    """Chosen ones are not created; changes, deletions and other namespaces do not depend on us."""
    async with hooked(is_down=True) as it:
        await it.api.create(TEAM, users("before"))
        await it.configure()
        with pytest.raises(StatusError, match="failed calling webhook"):
            await it.api.create(TEAM, users())
        await it.api.create(OTHER, users())
        await it.api.merge(f"{TEAM}/before", {"metadata": {"labels": {"a": "b"}}})
        await it.api.delete(f"{TEAM}/before")


async def test_while_it_is_down_ignore_lets_jobs_through() -> None:
    """They are nobody's but the built-in controller's."""
    async with hooked(is_down=True) as it:
        await it.configure(failure_policy="Ignore")
        assert not is_claimed(await it.api.create(TEAM, users()))


async def test_the_bundle_is_kept_like_our_authority() -> None:
    """In every webhook of both configurations, with one write each, and none when it is there already."""
    async with hooked() as it:
        await it.configure(trusts=b"")
        with pytest.raises(StatusError, match="failed calling webhook"):
            await it.api.create(TEAM, users())
        keeper = Bundles(client_of(it.wire), it.certificates, log=get_log("test"))
        for _ in range(2):
            await keeper.look()
            assert await it.bundles() == [AUTHORITY.certificate] * 3
        assert len(it.wire.writes()) == 2
        assert is_claimed(await it.api.create(TEAM, users()))


async def test_webhooks_of_others_in_our_configuration_keep_their_bundle() -> None:
    """And a missing configuration, or right, is no reason to end."""
    async with hooked() as it:
        keeper = Bundles(client_of(it.wire), it.certificates, log=get_log("test"))
        await keeper.look()
        await it.configure(trusts=b"")
        theirs = {"name": "check.example.com", "clientConfig": {"url": "https://example.com"}, "sideEffects": "None"}
        path = HOOKS.format("validating") + "/jobmirror"
        found = await it.api.get(path)
        found["webhooks"].append(theirs | {"admissionReviewVersions": ["v1"]})
        await it.api.replace(path, found)
        await keeper.look()
        assert await it.bundles() == [*[AUTHORITY.certificate] * 3, b""]


async def post(port: int, body: Any, path: str = routes.MUTATE) -> tuple[int, str]:
    url, tls = f"https://127.0.0.1:{port}{path}", client_context(AUTHORITY.certificate)
    async with aiohttp.ClientSession() as session, session.post(url, data=body, ssl=tls) as answer:
        return answer.status, await answer.text()


async def post_raw(port: int, rest: bytes) -> bytes:
    """The status of an answer to what follows the first header."""
    tls = client_context(AUTHORITY.certificate)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    writer.write(f"POST {routes.MUTATE} HTTP/1.1\r\nHost: here\r\n".encode() + rest)
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return line.split()[1]


async def test_strangers_write_few_lines_into_the_log(log_lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reaches the address can post thousands in a second, and must not fill a disk."""
    monkeypatch.setattr(routes, "LINES_A_SECOND", 0.0001)
    monkeypatch.setattr(routes, "LINES_AT_ONCE", 3)
    async with hooked() as world:
        for _ in range(8):
            assert (await post(world.port, b"x"))[0] == 400
    assert sum(line["event"] == "review refused" for line in log_lines) == 3


async def test_what_is_no_review_is_refused_and_what_is_too_large_not_read(
    caplog: pytest.LogCaptureFixture, log_lines: Lines
) -> None:
    """In words for who tries it by hand; nothing of it is quoted, there or in the log."""
    caplog.set_level("DEBUG", "aiohttp")
    async with hooked() as it:
        assert await post(it.port, b"\xff{") == (400, "not an AdmissionReview\n")
        assert (await post(it.port, b"[" * 100_000))[0] == 400
        assert await post(it.port, review(users(), operation="DELETE")) == (
            400,
            "only CREATE and UPDATE are answered here\n",
        )
        assert (await post(it.port, io.BytesIO(b"x" * (https.MOST_BODY_BYTES + 1))))[0] == 413
        assert (await post(it.port, b"", "/elsewhere"))[0] == 404
        assert await post_raw(it.port, b"Transfer-Encoding: chunked\r\n\r\nzz\r\n") == b"400"
        assert UID in (await post(it.port, review(users())))[1]
        assert it.answers("mutate", "error") == 4
    assert "zz" not in caplog.text + str(log_lines)


WORDS = ("metadata", "spec", "annotations", "labels", "ownerReferences", "suspend", "managedBy", "controller")
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=8,
)


TEXTS = st.none() | st.dictionaries(st.sampled_from((names.HELD, names.RULE_NAMES, names.ORIGIN, "a")), st.text())
OWNERS = st.none() | st.lists(st.dictionaries(st.sampled_from(("kind", "apiVersion")), st.text(max_size=8)), max_size=2)
JOBS = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"annotations": TEXTS, "labels": TEXTS, "ownerReferences": OWNERS})},
    optional={"spec": JSON, "status": JSON},
)


@given(
    raw=st.binary()
    | JOBS.map(review)
    | st.tuples(JOBS, JOBS).map(lambda both: review(*both))
    | JSON.map(review)
    | st.tuples(JSON, JSON).map(lambda both: review(*both))
)
def test_any_bytes_are_survived(raw: bytes) -> None:
    """Whatever is posted is answered, or refused as no review."""
    try:
        question = reviews.read(raw)
    except BadReview:
        return
    for decide in (routes.mutate, routes.validate):
        assert reviews.answer(question.uid, decide(question, names.DEFAULT_MANAGED_BY))
