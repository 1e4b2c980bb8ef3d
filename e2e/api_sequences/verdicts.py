"""Sends odd requests (``paths``) to both servers, and compares who got through, and with which words he did not."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import unquote

from e2e.api_sequences import paths
from e2e.api_sequences.paths import ROLES, Odd, odd_request
from e2e.api_sequences.run import Pair
from tests.contract.answer import Answer
from tests.contract.api import Api
from tests.contract.normal import Normal
from tests.contract.script import normal_form, picked
from tests.contract.server import Server

Json: TypeAlias = dict[str, Any]

_AT_ONCE = 64
_NAMESPACE = "verdicts"
_API = "rbac.authorization.k8s.io"
_COMPARED = ("reason", "message", "details")
_PATIENCE_SECONDS = 60


_NOT_SERVED = re.compile(
    r"/+(openapi/v[23]|openid|\.well-known|debug|metrics|logs|configz|swagger|apis/apps)\b.*"
    r"|/+api.*/(exec|attach|portforward|proxy|resize|ephemeralcontainers|approval)\b.*"
)
"""Paths of what is not served here, whoever asks: who is allowed is answered with 404 or 405."""
_NO_NAMESPACE = re.compile(r".*/namespaces/\.{0,2}/.*")
"""Paths below a namespace that can have no such name: what is allowed is refused in other words."""
_OF_ACCESS = (401, 403)
_NOT_THERE = (404, 405)


@dataclass(slots=True)
class Verdicts:
    """What a run has seen."""

    requests: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    differences: list[tuple[Odd, Json, Json]] = field(default_factory=list)

    def __str__(self) -> str:
        answers = ", ".join(f"{count} {what}" for what, count in sorted(self.answers.items()))
        return f"{answers}\n{self.requests} requests; {len(self.differences)} differ"


async def compare(both: Pair, *, seed: int, count: int) -> Verdicts:
    """Send so many requests of a seed."""
    clients = await asyncio.gather(_Clients.of(both.real), _Clients.of(both.ours))
    report, numbers = Verdicts(), iter(range(count))

    async def send_some() -> None:
        for number in numbers:
            asked = odd_request(seed, number)
            async with asyncio.timeout(_PATIENCE_SECONDS):
                real, ours = await asyncio.gather(*(one.verdict(asked) for one in clients))
            report.requests += 1
            report.answers[str(real["status"])] += 1
            if not _is_same(asked, real, ours):
                report.differences.append((asked, real, ours))

    async with asyncio.TaskGroup() as scope:
        for one in range(_AT_ONCE):
            scope.create_task(send_some(), name=f"sending {one}")
    return report


def _is_same(asked: Odd, real: Json, ours: Json) -> bool:
    """A real server has no Status for some paths, and ours for others; then only the number can be compared."""
    if real == ours or _is_meant(unquote(asked.target.split("?")[0]), real, ours):
        return True
    if real["status"] == ours["status"] == 403 and "impersonate-user" in asked.headers:
        return True  # of several ways to impersonate, the one that is tried first is the last one that worked
    real, ours = ({**one, "message": (one["message"] or "").replace("\\xff", "\ufffd")} for one in (real, ours))
    if real["reason"] and ours["reason"]:
        return real == ours
    return bool(real["status"] == ours["status"])


def _is_meant(path: str, real: Json, ours: Json) -> bool:
    """Whether ours refuses what it does not serve, as ``docs/embedded.md`` says, of somebody who may ask for it."""
    if ours["status"] in _OF_ACCESS or (real["status"] in _OF_ACCESS and not _is_of_connecting(real)):
        return False
    if _NOT_SERVED.fullmatch(path):
        return ours["status"] in _NOT_THERE
    return _NO_NAMESPACE.fullmatch(path) is not None and min(real["status"], ours["status"]) >= 400


def _is_of_connecting(real: Json) -> bool:
    """Refused by ``exec`` and its like themselves, which want ``create`` once GET was allowed."""
    return str(real["message"]).endswith(" is forbidden: ")


@dataclass(frozen=True, slots=True)
class _Clients:
    """The users of one server."""

    api: Api
    impersonator: Api
    """One who is not the administrator, and may act for some."""

    @classmethod
    async def of(cls, server: Server) -> _Clients:
        """Make everybody and everything."""
        api = Api(server, _NAMESPACE)
        await _prepare(api)
        issued = await api.post("serviceaccounts/a/token", {"spec": {}})
        return cls(api, api.bearing(issued.ok(201)["status"]["token"]))

    async def verdict(self, asked: Odd) -> Json:
        """What the server says, without what is in the objects."""
        match asked.user:
            case "":
                caller = self.api.anonymous()
            case paths.ADMIN:
                caller = self.api
            case paths.IMPERSONATOR:
                caller = self.impersonator
            case _:
                caller = self.api.impersonating(asked.user)
        content = asked.content if asked.body else ""
        answer = await caller.send(asked.method, asked.target, asked.body, content=content, headers=asked.headers)
        return _compared(answer)


def _compared(answer: Answer) -> Json:
    """The status, and what a Status says; what a request that got through has read is not looked at."""
    if answer.status < 400:
        return {"status": answer.status, **dict.fromkeys(_COMPARED)}
    return picked(normal_form(answer, Normal()), _COMPARED)


async def _prepare(api: Api) -> None:
    """Users with their roles, and one object of each kind."""
    await api.post("namespaces", {"metadata": {"name": _NAMESPACE}})
    for name, rules in ROLES.items():
        role = f"verdicts-{name}"
        (await api.post("clusterroles", {"metadata": {"name": role}, "rules": list(rules)})).ok(201)
        body = {
            "metadata": {"name": role},
            "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": role},
            "subjects": [_subject(name)],
        }
        (await api.post("clusterrolebindings", body)).ok(201)
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    objects: dict[str, Json] = {
        "configmaps": {},
        "secrets": {},
        "serviceaccounts": {},
        "pods": {"spec": pod},
        "jobs": {"spec": {"template": {"spec": pod}}},
        "roles": {"rules": []},
        "leases": {},
        "/apis/contract.example.com/v1/namespaces/OURS/things": {
            "apiVersion": "contract.example.com/v1",
            "kind": "Thing",
            "spec": {"size": 1},
        },
    }
    for target, fields in objects.items():
        (await api.post(target, {"metadata": {"name": "a"}, **fields})).ok(201)
    last = api.impersonating("slash")
    await api.repeat(lambda: last.get("/"), lambda answer: answer.status == 200)


def _subject(name: str) -> Json:
    if name == paths.IMPERSONATOR:
        return {"kind": "ServiceAccount", "namespace": _NAMESPACE, "name": "a"}
    return {"kind": "User", "apiGroup": _API, "name": name}
