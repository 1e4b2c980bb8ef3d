"""The webhook's two addresses: an API server posts a review and gets one back (D16).

``app`` puts them behind the HTTPS address. Every replica answers, from what it is asked alone: nothing is stored,
looked up or waited for, so a dry run is like any other. Not here: what is said (``mutating``, ``validating``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from mirror.kinds.registry import BUILT_IN, Kinds
from mirror.kube.limits import Limiter
from mirror.model.losses import OnLoss
from mirror.serving.peers import peer_of
from mirror.telemetry.logs import Log
from mirror.webhook import reviews
from mirror.webhook.bodies import Bodies
from mirror.webhook.mutating import mutate
from mirror.webhook.reviews import BadReview, Question, Verdict
from mirror.webhook.validating import validate

MUTATE, VALIDATE = "/mutate-jobs", "/validate-jobs"
READ_SECONDS = 10.0
LINES_A_SECOND, LINES_AT_ONCE = 2.0, 20

Counted = Callable[[str, str, float], None]
"""Told of each answer: ``mutate`` or ``validate``; ``allowed``, ``denied`` or ``error``; how many seconds it took."""


def routes(
    managed_by: str,
    *,
    count: Counted,
    log: Log,
    namespaces: tuple[str, ...] = (),
    kinds: Kinds = BUILT_IN,
    on_loss_allowed: Collection[OnLoss] = frozenset(OnLoss),
) -> list[web.RouteDef]:
    """Both routes, for sources that are to be managed by this value, in these namespaces (empty: all)."""

    def claim(question: Question) -> Verdict:
        return mutate(question, managed_by, namespaces=namespaces, kinds=kinds)

    def check(question: Question) -> Verdict:
        return validate(question, managed_by, on_loss_allowed=on_loss_allowed)

    shared = _Shared(Bodies(), partial(reviews.read, kinds=kinds), count, log, _Refusals(log))
    return [
        web.post(MUTATE, _answering("mutate", claim, shared)),
        web.post(VALIDATE, _answering("validate", check, shared)),
    ]


class _Refusals:
    """Logs what is no review, a few lines a second: whoever reaches our address can send any number of them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lines = Limiter(LINES_A_SECOND, LINES_AT_ONCE, time.monotonic)
        self._left_out = 0

    def log(self, hook: str, error: BadReview) -> None:
        if not self._lines.acquire_nowait():
            self._left_out += 1
            return
        self._log.info("review refused", hook=hook, because=error, left_out=self._left_out)
        self._left_out = 0


@dataclass(frozen=True, slots=True)
class _Shared:
    """What both addresses use."""

    bodies: Bodies
    read: Callable[[bytes], Question]
    count: Counted
    log: Log
    refusals: _Refusals


def _answering(
    hook: str, decide: Callable[[Question], Verdict], shared: _Shared
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        verdict, began = "error", time.perf_counter()
        try:
            async with _body(request, shared.bodies) as raw:
                began = time.perf_counter()
                question = shared.read(raw)
            said = decide(question)
            verdict = "denied" if said.denied_because else "allowed"
        except BadReview as error:
            shared.refusals.log(hook, error)
            return web.Response(status=400, text=f"{error}\n")
        finally:
            shared.count(hook, verdict, time.perf_counter() - began)
        metadata = question.found.metadata
        shared.log.debug("reviewed", hook=hook, namespace=metadata.namespace, name=metadata.name, verdict=verdict)
        return web.Response(body=reviews.answer(question.uid, said), content_type="application/json")

    return answer


@asynccontextmanager
async def _body(request: web.Request, bodies: Bodies) -> AsyncIterator[bytes]:
    """What was posted; 413 or 503 when it is too much, 408 when it does not come, 400 when it is no body."""
    async with AsyncExitStack() as stack:
        reading = bodies.read(request.content, peer_of(request.remote or ""), most=request.client_max_size)
        try:
            async with asyncio.timeout(READ_SECONDS):
                raw = await stack.enter_async_context(reading)
        except TimeoutError:
            raise web.HTTPRequestTimeout(text=f"not sent within {READ_SECONDS:g} s\n") from None
        except web.RequestPayloadError:
            raise web.HTTPBadRequest(text="not a body that can be read\n") from None
        yield raw
