"""An API server whose webhooks are functions."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeAlias

from mirror.batch import times
from mirror.embedded.apiserver.admission.calling import CallFailed
from mirror.embedded.apiserver.admission.chain import Admission
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.registry.resources import webhook_configurations
from mirror.embedded.clocks import LoopClock
from tests.embedded.apiserver.asking import Asking

Json: TypeAlias = dict[str, Any]
Answering: TypeAlias = Callable[[Json], Json]

HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"


@dataclass
class Asked:
    """One call of a webhook."""

    url: str
    request: Json
    seconds: float
    address: str


@dataclass
class Functions:
    """Answers for webhooks, by the last part of their URL."""

    answers: dict[str, Answering | CallFailed] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    async def post(self, url: str, body: bytes, *, authorities: bytes, seconds: float, address: str = "") -> bytes:
        review = json.loads(body)
        self.asked.append(Asked(url, review["request"], seconds, address))
        answering = self.answers[url.rpartition("/")[2]]
        if isinstance(answering, CallFailed):
            raise answering
        response = {"uid": review["request"]["uid"], **answering(review["request"])}
        raw = response.pop("raw", None)
        if raw is not None:
            return bytes(raw)
        return json.dumps(review | {"response": response}).encode()


def allow(request: Json) -> Json:
    """Say yes."""
    return {"allowed": True}


def patch(*operations: Json) -> Answering:
    """Say yes, and change the object."""
    encoded = b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def label(name: str, value: str) -> Answering:
    """Say yes, and set a label."""

    def answering(request: Json) -> Json:
        has = "labels" in request["object"]["metadata"]
        at = f"/metadata/labels/{name}" if has else "/metadata/labels"
        return patch({"op": "add", "path": at, "value": value if has else {name: value}})(request)

    return answering


class Hooked(Asking):
    """Requests to an API server with webhooks."""

    def __init__(self) -> None:
        super().__init__()
        self.functions = Functions()
        self.services: dict[tuple[str, str, int], str] = {}
        for kind in webhook_configurations.kinds():
            self.server.registry.add(kind)
        clock = LoopClock()
        admission = Admission(
            storage=self.server.storage,
            registry=self.server.registry,
            random=Random(2),
            context=lambda: Context(now=times.of(clock.now())),
            caller=self.functions,
            service_address=lambda *service: self.services.get(service),
        )
        self.server.dependencies = replace(self.server.dependencies, admission=admission)

    async def hook(self, name: str, answering: Answering | CallFailed, *, kind: str = "mutating", **more: Any) -> Json:
        """Register a webhook for new and changed ConfigMaps."""
        self.functions.answers[name] = answering
        return await self.ok("POST", HOOKS.format(kind), configuration(name, **more))


def configuration(named: str, **more: Any) -> Json:
    """With one webhook."""
    webhook: Json = {
        "name": f"{named}.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:1/{named}"},
        "rules": [rule()],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }
    return {"metadata": {"name": named}, "webhooks": [webhook]}


def rule(resource: str = "configmaps", group: str = "", **more: Any) -> Json:
    """For new and changed objects."""
    found: Json = {"operations": ["CREATE", "UPDATE"], "apiGroups": [group], "apiVersions": ["v1"]}
    return found | {"resources": [resource]} | more
