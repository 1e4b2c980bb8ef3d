"""Whatever comes in, a Status or what was asked for goes out: no trace, no hang, no dead server."""

from __future__ import annotations

import asyncio
import copy
import json
from random import Random
from typing import Any

import pytest
from doubles.examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from mirror.embedded.apiserver.messages import ADMIN, Request, Response, Stream
from tests.embedded.apiserver.asking import JOBS, MAPS, PODS, Asking, Json, job

TYPES = [
    "",
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "\x00",
]
PATHS = [
    "/",
    MAPS,
    f"{MAPS}/a",
    JOBS,
    f"{JOBS}/a",
    f"{JOBS}/a/status",
    f"{PODS}/p/log",
    f"{PODS}/p/binding",
    f"{PODS}/p/eviction",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/other/finalize",
    "/api/v1/nodes",
    "/api/v1/namespaces/default/serviceaccounts/default/token",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/openapi/v3",
    "/version",
    "/healthz",
]
QUERIES = [
    "",
    "watch=1&timeoutSeconds=1",
    "limit=1&continue=eyJ",
    "labelSelector=a%20in%20(",
    "fieldSelector=%3D",
    "resourceVersion=-1",
    "dryRun=All&fieldManager=x&force=1",
    "dryRun=x",
    "gracePeriodSeconds=x",
    "fieldValidation=Strict",
]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW", ""]
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    1.5,
    "",
    "a",
    "\x00",
    "é" * 300,
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"a": {}},
]
DEEP = [
    b"[" * 50_000,
    b'{"a":' * 50_000,
    b"- " * 50_000,
    b"&a [*a, *a]",
    b"\xff\xfe",
    b'{"a":1}{"b":2}',
    b"null",
    b'"x"',
]


async def answered(api: Asking, request: Request) -> int:
    """The status; the rest must be well formed."""
    async with asyncio.timeout(60):
        answer = await api.server.handle(request)
        if isinstance(answer, Stream):
            await anext(answer.pieces, None)
            await answer.pieces.aclose()
            return answer.status
    assert isinstance(answer, Response)
    if answer.status >= 400 and answer.content_type == "application/json":
        body = json.loads(answer.body)
        assert (body["kind"], body["code"]) == ("Status", answer.status)
        assert body.get("reason") != "InternalError" or "Error" not in body["message"].split()[-1], body
        assert "Traceback" not in body["message"]
    for name, value in answer.headers:
        assert "\n" not in name + value
        assert "\r" not in name + value
    return answer.status


def mutated(body: Json, random: Random) -> Json:
    """The object with something of it replaced, removed or doubled."""
    changed = copy.deepcopy(body)
    for _ in range(random.randint(1, 3)):
        place: Any = changed
        while isinstance(place, dict | list) and place:
            key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if not isinstance(place[key], dict | list) or not place[key] or random.random() < 0.3:
                if random.random() < 0.2 and isinstance(place, dict):
                    del place[key]
                else:
                    place[key] = copy.deepcopy(random.choice(VALUES))
                break
            place = place[key]
    return changed


@examples(60, suppress_health_check=[HealthCheck.too_slow])
@given(
    method=st.sampled_from(METHODS) | st.text(max_size=8),
    path=st.sampled_from(PATHS) | st.text(max_size=30).map(lambda text: "/" + text) | st.text(max_size=10),
    query=st.sampled_from(QUERIES) | st.text(max_size=30),
    content_type=st.sampled_from(TYPES) | st.text(max_size=20),
    accept=st.sampled_from(["", "application/json;as=Table;v=v1;g=meta.k8s.io", "*/*;q=x", ";;,,"])
    | st.text(max_size=20),
    body=st.binary(max_size=60) | st.sampled_from(DEEP),
)
def test_any_request_is_answered(
    method: str, path: str, query: str, content_type: str, accept: str, body: bytes
) -> None:
    """Nonsense everywhere."""

    async def ask() -> None:
        headers = {"content-type": content_type, "accept": accept, "user-agent": content_type}
        await answered(Asking(), Request(method, path, query, headers, body, ADMIN))

    asyncio.run(ask())


@pytest.mark.parametrize("seed", range(6))
def test_any_object_is_answered(seed: int) -> None:
    """Objects that are nearly right, on their way in by every verb."""
    random = Random(seed)
    samples: list[tuple[str, Json]] = [
        (JOBS, {**job("a", suspend=True, parallelism=1), "status": {"active": 1, "conditions": [{"type": "x"}]}}),
        (MAPS, {"metadata": {"name": "a", "labels": {"x": "y"}, "finalizers": ["x.io/y"]}, "data": {"k": "v"}}),
        (
            PODS,
            {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "e"}]}]}},
        ),
    ]

    async def ask() -> None:
        api = Asking()
        for path, sample in samples:
            await api.ask("POST", path, sample)
        for _ in range(150):
            path, sample = random.choice(samples)
            body = json.dumps(mutated(sample, random)).encode()
            method = random.choice(["POST", "PUT", "PATCH", "DELETE"])
            target = path if method == "POST" else f"{path}/a{random.choice(['', '/status'])}"
            content_type = random.choice(TYPES[3:7]) if method == "PATCH" else "application/json"
            query = random.choice(["", "fieldManager=m&force=true", "fieldValidation=Strict", "dryRun=All"])
            headers = {"content-type": content_type, "user-agent": "fuzz"}
            await answered(api, Request(method, target, query, headers, body, ADMIN))

    asyncio.run(ask())
