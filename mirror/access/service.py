"""Answers users' requests about their Jobs' mirrors: who asks, what they may, what there is. Free of HTTP (``web``).

Nothing is looked for before the rights are sure, so that refusals tell nothing. Each request leaves one line in the
log: who, what, of which Job, and the verdict; never a token or content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Protocol

from mirror.access import request_parsing
from mirror.access.answers import Answer, StatusError, no_job, refusal, whole
from mirror.access.bounds import Bounds
from mirror.access.comparing import Comparing
from mirror.access.logs import Cut, Logs, Out
from mirror.access.mirrors import Mirrors
from mirror.access.request_parsing import Asked, Question
from mirror.access.reviews import Person, Reviews
from mirror.batch.syntax import label_problems
from mirror.kinds.base import BadDraft, Kind, MirrorTransform
from mirror.kinds.report import Report
from mirror.kube.client import Client
from mirror.kube.errors import KubeError, describe
from mirror.kube.limits import Limiter
from mirror.kube.objects import Object, Partial, size_of
from mirror.kube.permissions import Permission
from mirror.model.keys import SourceKey
from mirror.model.views import Known
from mirror.runtime.store import Store
from mirror.serving.peers import peer_of
from mirror.telemetry.logs import Log
from mirror.workers.registry import Registry

STRANGERS_LOGGED_A_SECOND, STRANGERS_LOGGED_AT_ONCE = 2.0, 20
"""Lines about requests of nobody known: else whoever reaches the port could fill a disk."""
LISTS_A_SECOND_OF_ONE, LISTS_AT_ONCE_OF_ONE = 1.0, 10
LISTS_A_SECOND, LISTS_AT_ONCE = 5.0, 20
"""Of all who may: each takes up to a tenth of a second in which nothing else is done."""
_PREFIX = "impersonate-"


@dataclass(frozen=True, slots=True)
class Around:
    """What ``access`` needs of the manager."""

    management: Client
    kind: Kind
    """Whose objects can be asked for."""
    sources: Store
    registry: Registry
    known: Known
    obstacles_of_draft: Callable[[Object], Mapping[str, str]]
    transform: MirrorTransform
    managed_by: str


class Reply(Out, Protocol):
    """Where an answer goes: one ``whole``, or ``begin`` and then ``write``; and where the request's body comes from."""

    async def body(self, most_bytes: int) -> bytes:
        """Read it; only once it is known who sends it. Raises StatusError: it is too long."""
        ...

    async def whole(self, answer: Answer) -> None: ...


@dataclass(slots=True)
class _Line:
    """One request's line in the log, as far as it is known."""

    asked: Asked
    user: str = ""
    question: Question | None = None
    fields: dict[str, object] = field(default_factory=dict)


class Access:
    """Make it in the running loop."""

    def __init__(self, around: Around, *, log: Log, bounds: Bounds | None = None) -> None:
        self._around = around
        self._log = log
        self._bounds = bounds or Bounds()
        self._reviews = Reviews(around.management)
        self._mirrors = Mirrors(
            around.kind, around.sources, around.registry, origin=around.transform.origin, bounds=self._bounds
        )
        self._logs = Logs(self._mirrors, self._bounds)
        self._comparing = Comparing()
        now = asyncio.get_running_loop().time
        self._lists = Limiter(LISTS_A_SECOND, LISTS_AT_ONCE, now)
        self._strangers = Limiter(STRANGERS_LOGGED_A_SECOND, STRANGERS_LOGGED_AT_ONCE, now)

    async def handle(self, asked: Asked, reply: Reply) -> None:
        """Answer one request.

        Raises:
            Cut: a log that had begun was not handed on to its end; the connection is to be broken off.
        """
        line = _Line(asked)
        async with AsyncExitStack() as stack:
            try:
                send = await self._decide(asked, reply, line, stack)
            except StatusError as refused:
                self._audit(line, refused.code, refused.message)
                await reply.whole(refusal(refused))
                return
            self._audit(line, 200)
            try:
                await send(reply)
            except (StatusError, Cut) as error:
                self._log.bind(**line.fields).info("access cut", user=line.user, because=str(error))
                raise error if isinstance(error, Cut) else Cut(str(error)) from error

    async def _decide(
        self, asked: Asked, reply: Reply, line: _Line, stack: AsyncExitStack
    ) -> Callable[[Reply], Awaitable[None]]:
        """What to send; what has to stay open for it is on the stack.

        Raises:
            StatusError: it is not sent.
        """
        try:
            async with asyncio.timeout(self._bounds.decide_seconds):
                person, question = await self._admit(asked, line)
                if question.is_draft:
                    answer = await self._about_draft(reply, person, line)
                else:
                    await self._require(person, _rights(question))
                    if question.what == "log":
                        return await self._open_log(question, person, stack, line)
                    answer = await self._answer(question, person)
                return _sending(whole(answer))
        except TimeoutError:
            raise StatusError(504, "no answer in time") from None
        except KubeError as error:  # an object in a cache that cannot be read: a worker may send anything
            raise StatusError(502, f"the stored object cannot be read: {describe(error)}") from error

    async def _admit(self, asked: Asked, line: _Line) -> tuple[Person, Question]:
        """Who asks what.

        Raises:
            StatusError: 400, 401, 404, 405, 429, 5xx.
        """
        person = await self._reviews.person(asked.headers.get("authorization", ""), peer_of(asked.peer))
        line.user = person.name
        if any(name.startswith(_PREFIX) for name in asked.headers):
            raise StatusError(400, "impersonation is not supported; use a token of that user")
        bounds = self._bounds
        question = request_parsing.read(
            asked, most_tail_lines=bounds.tail_lines, most_items=bounds.jobs, most_bytes=bounds.log_bytes
        )
        line.question = question
        if not question.name:
            # Thousands of Jobs are gone through, or a long body: that takes its time.
            self._reviews.bound("list", person.name, LISTS_A_SECOND_OF_ONE, LISTS_AT_ONCE_OF_ONE)
        return person, question

    async def _require(self, person: Person, rights: list[Permission]) -> None:
        for right in rights:
            await self._reviews.require(person, right)

    # -- what there is ------------------------------------------------------------------------------------------------

    async def _answer(self, question: Question, person: Person) -> object:
        if not question.name:
            return self._list(question)
        namespace = question.namespace or ""
        source = self._mirrors.source(namespace, question.name)
        match question.what:
            case "pods":
                pods, token = await self._mirrors.pods(self._mirrors.mirror(source), self._page(question), person)
                items = [pod.shown() for pod in pods]
                return {"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": token}, "items": items}
            case "events":
                found, is_cut = await self._mirrors.events(self._mirrors.mirror(source), self._page(question), person)
                events = [event.shown() for event in found]
                return {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": events, "isCut": is_cut}
            case "diff":
                return await self._differences(source)
        return self._job(namespace, question.name)

    def _take_turn(self) -> None:
        """Go on only if not too many do what takes long; who has no right to it does not get here."""
        if not self._lists.acquire_nowait():
            raise StatusError(429, "too many requests for lists and drafts; retry in one second", retry_after_seconds=1)

    def _list(self, question: Question) -> object:
        self._take_turn()
        jobs = self._around.known.jobs(question.namespace, most=(question.page.most or self._bounds.items) + 1)
        most = question.page.most or self._bounds.items
        return {"items": jobs[:most], "isCut": len(jobs) > most}

    def _job(self, namespace: str, name: str) -> object:
        known = self._around.known
        key = SourceKey(self._around.kind.name, namespace, name)
        found = known.job(key)
        if found is None:
            raise no_job(namespace, name)
        obstacles = known.placement_obstacles(key) if found.state in ("Waiting", "Suspended") else {}
        waiting = "" if found.is_finished else found.because
        return {"job": found, "timeline": known.timeline(key), "waiting": waiting, "lacks": dict(obstacles)}

    async def _differences(self, source: Object) -> object:
        around = self._around
        name = around.kind.summary(source).placed
        if name is None:
            report = await self._comparing.run(lambda: self._before(source), size_of(source))
            return {"worker": "", "mirror": "", "report": report}
        mirror = self._mirrors.mirror(source)
        if isinstance(mirror.found, Partial):
            raise StatusError(503, f"the mirror on worker {name} is too large to be compared")
        report = await self._comparing.run(
            lambda: around.kind.differences_between(
                source, mirror.found, transform=around.transform, managed_by=around.managed_by
            ),
            size_of(source) + size_of(mirror.found),
        )
        return {"worker": name, "mirror": mirror.uid, "report": report}

    async def _about_draft(self, reply: Reply, person: Person, line: _Line) -> object:
        body = await reply.body(self._bounds.draft_bytes)
        draft = await self._comparing.run(lambda: _draft(self._around.kind, body), len(body))
        line.fields |= {"namespace": draft.metadata.namespace, "job": draft.metadata.name}
        await self._require(person, [Permission("create", "batch", "jobs", namespace=draft.metadata.namespace)])
        self._take_turn()
        around = self._around
        report = await self._comparing.run(lambda: self._before(draft), size_of(draft))
        return {"worker": "", "mirror": "", "report": report, "lacks": dict(around.obstacles_of_draft(draft))}

    def _before(self, source: Object) -> Report:
        around = self._around
        return around.kind.differences_before(source, transform=around.transform, managed_by=around.managed_by)

    def _page(self, question: Question) -> request_parsing.Page:
        """Lists from workers are shorter than lists of Jobs."""
        most = min(question.page.most or self._bounds.items, self._bounds.items)
        return request_parsing.Page(most, question.page.continue_token, question.page.index)

    # -- logs ---------------------------------------------------------------------------------------------------------

    async def _open_log(
        self, question: Question, person: Person, stack: AsyncExitStack, line: _Line
    ) -> Callable[[Reply], Awaitable[None]]:
        """Find the pod and open its log; what is left to do is to hand it on."""
        wanted, logs = question.log, self._logs
        line.fields["pod"] = wanted.pod
        mirror = self._mirrors.mirror(self._mirrors.source(question.namespace or "", question.name))
        stack.enter_context(logs.counted(person, question.namespace or ""))
        pod = await logs.pod(mirror, wanted, person)
        containers = logs.containers(pod, wanted)
        line.fields |= {"pod": pod.metadata.name, "container": ",".join(containers), "worker": mirror.worker.name}
        first = await stack.enter_async_context(logs.opened(mirror, pod, containers[0], wanted, person))

        async def send(reply: Reply) -> None:
            await reply.begin((("X-Jobmirror-Worker", mirror.worker.name), ("X-Jobmirror-Pod", pod.metadata.name)))
            count = await logs.hand_on(first, reply, follow=wanted.follow)
            for container in containers[1:]:
                try:
                    async with logs.opened(mirror, pod, container, wanted, person) as pieces:
                        count = await logs.hand_on(pieces, reply, follow=False, already=count)
                except StatusError as refused:
                    if refused.code != 400:  # 400: this container has not begun
                        raise Cut(refused.message) from refused

        return send

    # -- the log of who asked what ------------------------------------------------------------------------------------

    def _audit(self, line: _Line, code: int, because: str = "") -> None:
        if not line.user and not self._strangers.acquire_nowait():
            return
        question = line.question or Question()
        fields: dict[str, object] = {
            "user": line.user or "(nobody known)",
            "peer": line.asked.peer,
            "verb": question.what or ("get" if question.name else "list") if line.question else line.asked.method,
            "namespace": question.namespace or "",
            "job": question.name,
            **line.fields,
            "verdict": "allowed" if code < 400 else "refused" if code < 500 else "failed",
            "code": code,
        }
        if because:
            fields["because"] = because
        self._log.bind(**fields).info("access")


def _rights(question: Question) -> list[Permission]:
    """What one has to be allowed on the management cluster to be told."""
    namespace = question.namespace or ""
    if not question.name:
        return [Permission("list", "batch", "jobs", namespace=namespace)]
    rights = [Permission("get", "batch", "jobs", name=question.name, namespace=namespace)]
    match question.what:
        case "log":
            rights.append(Permission("get", "", "pods", "log", namespace=namespace))
        case "pods":
            rights.append(Permission("list", "", "pods", namespace=namespace))
        case "events":
            rights.append(Permission("list", "", "events", namespace=namespace))
    return rights


def _sending(answer: Answer) -> Callable[[Reply], Awaitable[None]]:
    return lambda reply: reply.whole(answer)


def _draft(kind: Kind, body: bytes) -> Object:
    try:
        draft = kind.draft(body)
    except BadDraft as error:
        raise StatusError(400, str(error)) from None
    namespace = draft.metadata.namespace
    if label_problems(namespace):
        raise StatusError(400, "metadata.namespace: required")
    return draft
