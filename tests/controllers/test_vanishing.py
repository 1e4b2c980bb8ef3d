"""Deletions of sources of kinds that come and go (D23): believed after discovery has said that the kind is served."""

from __future__ import annotations

import asyncio

import pytest
from doubles.drills import DRILL

from mirror.controllers.vanishing import MOST_ATTEMPTS, Vanishing
from mirror.kinds.base import Kind
from mirror.kube.errors import KubeError, PageNotFound, Unreachable
from mirror.kube.objects import Meta, Object
from mirror.kube.requests import Request
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime

SERVED = b'{"resources": [{"name": "drills", "verbs": ["get", "list", "create"]}]}'
GOING = b'{"resources": [{"name": "drills", "verbs": ["get", "list", "delete"]}]}'
SOURCES = [Object(Meta(name=name, uid=name)) for name in "abc"]


class Server:
    """Answers discovery, each time with the next of these; the last one stays."""

    def __init__(self, *answers: bytes | KubeError) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def send(self, request: Request) -> bytes:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, KubeError):
            raise answer
        return answer


async def confirmed(server: Server) -> list[str]:
    """Which of the sources that went are known to be deleted, after a minute."""
    found: list[str] = []

    def confirm(kind: Kind, source: Object) -> None:
        found.append(source.metadata.uid)

    vanishing = Vanishing(server, log=get_log("test"))
    task = asyncio.create_task(vanishing.run(confirm))
    for source in SOURCES:
        vanishing.add(DRILL, source)
    await asyncio.sleep(60)
    task.cancel()
    return found


async def test_they_are_believed_where_the_kind_is_served() -> None:
    """One question for all of them."""
    server = Server(SERVED)
    assert await confirmed(server) == ["a", "b", "c"]
    assert server.asked == 1


@pytest.mark.parametrize("answer", [GOING, PageNotFound("404"), b"{}"], ids=["its definition goes", "unknown", "gone"])
async def test_nothing_follows_where_it_is_not(answer: bytes | KubeError) -> None:
    """CR7, CR9: while a definition is being deleted the kind is there, and takes no new objects."""
    assert await confirmed(Server(answer)) == []


async def test_a_server_that_does_not_say_is_asked_again() -> None:
    """Nothing is lost by it."""
    assert await confirmed(Server(Unreachable("no"), Unreachable("no"), SERVED)) == ["a", "b", "c"]


async def test_one_that_never_says_leaves_them_to_the_sweep() -> None:
    """It is not asked for ever."""
    server = Server(Unreachable("no"))
    assert await confirmed(server) == []
    assert server.asked == MOST_ATTEMPTS + 1
