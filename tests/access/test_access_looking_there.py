"""What a worker has of what pods name, by its answers: classes, claims and limits that no embedded server has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from mirror.access.answers import StatusError
from mirror.access.looking import Looking, OnWorker
from mirror.access.mirrors import Mirrors
from mirror.access.reviews import Person, Reviews
from mirror.kinds.dependencies import Reference
from mirror.kube.errors import NotFound
from mirror.kube.permissions import Permission
from mirror.kube.requests import Request
from mirror.workers.worker import Worker

ANN = Person("ann")


class There:
    """A worker with a prefix, and what it answers by path."""

    name = "east"

    def __init__(self, **answers: Any) -> None:
        self.answers = {key.replace("__", "/"): value for key, value in answers.items()}
        self.asked: list[str] = []

    def namespace_of(self, namespace: str) -> str:
        return f"p-{namespace}"

    async def send(self, worker: Worker, request: Request, person: Person, doing: str) -> bytes:
        self.asked.append(request.path)
        for end, answer in self.answers.items():
            if request.path.endswith(end):
                return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
        raise NotFound(404, "NotFound")


@dataclass
class Rights:
    """What the management cluster allows."""

    allowed: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    async def require(self, person: Person, right: Permission) -> None:
        self.asked.append(str(right))
        if right.resource not in self.allowed:
            raise StatusError(403, "missing permission")

    def bound(self, kind: str, whom: str, rate: float, burst: int) -> None:
        """Nothing is."""


async def look(there: There, rights: Rights, *wanted: tuple[str, str]) -> list[OnWorker]:
    looking = Looking(cast("Mirrors", there), cast("Reviews", rights))
    references = [Reference(kind, name, "path") for kind, name in wanted]
    return await looking.look([cast("Worker", there)], "team", references, ANN)


async def test_classes_are_cluster_wide_and_claims_are_in_the_mirrors_namespace() -> None:
    there = There(high={"metadata": {"name": "high"}}, data={"metadata": {"name": "data"}})
    rights = Rights({"priorityclasses", "runtimeclasses", "persistentvolumeclaims"})
    wanted = ("PriorityClass", "high"), ("RuntimeClass", "gvisor"), ("PersistentVolumeClaim", "data")
    found = await look(there, rights, *wanted)

    assert [(one.object, one.state) for one in found] == [
        ("PriorityClass high", "Exists"),
        ("RuntimeClass gvisor", "Missing"),
        ("PersistentVolumeClaim data", "Exists"),
    ]
    assert there.asked == [
        "/apis/scheduling.k8s.io/v1/priorityclasses/high",
        "/apis/node.k8s.io/v1/runtimeclasses/gvisor",
        "/api/v1/namespaces/p-team/persistentvolumeclaims/data",
    ]
    assert "get persistentvolumeclaims data in team" in rights.asked


async def test_limit_ranges_are_named_to_who_may_list_them_here() -> None:
    there = There(limitranges={"items": [{"metadata": {"name": f"small-{number}"}} for number in range(9)]})
    assert await look(there, Rights()) == []
    assert there.asked == []
    found = await look(there, Rights({"limitranges"}))
    assert [one.object for one in found] == [f"LimitRange small-{number}" for number in range(5)]


async def test_an_answer_that_makes_no_sense_is_not_known() -> None:
    there = There(high=b"[1,", limitranges=b"7")
    (found,) = await look(there, Rights({"priorityclasses", "limitranges"}), ("PriorityClass", "high"))
    assert (found.state, found.message) == ("Unknown", "the response cannot be decoded")
