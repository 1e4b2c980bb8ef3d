"""Answers users' requests about their Jobs' mirrors: authentication, authorization, content. Free of HTTP (``web``).

Nothing is looked for before the rights are sure, so that refusals tell nothing; each kind has rights of its own. Each
request leaves one line in the log: who, what, of which object, and the verdict; never a token or content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec

from mirror.access import request_parsing
from mirror.access.answers import Answer, StatusError, no_source, refusal, whole
from mirror.access.bounds import Bounds
from mirror.access.comparing import Comparing
from mirror.access.differing import Differing
from mirror.access.elsewhere import POD_HEADER, WORKER_HEADER, Elsewhere, Owner
from mirror.access.going_along import GoingAlong
from mirror.access.logs import Cut, Logs, Out
from mirror.access.looking import Looking
from mirror.access.mirrors import Mirror, Mirrors
from mirror.access.peers import PASSED_ON
from mirror.access.request_parsing import Asked, Question
from mirror.access.reviews import Allowance, Person, Reviews, allowances, allowances_passed_on
from mirror.access.sources import AccessSources
from mirror.batch.syntax import label_problems
from mirror.kinds.base import BadDraft, Kind
from mirror.kinds.registry import Kinds
from mirror.kube.errors import KubeError, describe
from mirror.kube.limits import Limiter
from mirror.kube.objects import JUNK, Object, Partial
from mirror.kube.permissions import Permission
from mirror.model.keys import SourceKey
from mirror.serving.peers import peer_of
from mirror.telemetry.logs import Log

STRANGERS_LOGGED_A_SECOND, STRANGERS_LOGGED_AT_ONCE = 2.0, 20
"""Lines about requests of nobody known: else whoever reaches the port could fill a disk."""
LISTS_A_SECOND_OF_ONE, LISTS_AT_ONCE_OF_ONE = 1.0, 10
LISTS_A_SECOND, LISTS_AT_ONCE = 5.0, 20
"""Of all who may: each takes up to a tenth of a second in which nothing else is done."""
_PREFIX = "impersonate-"


class Reply(Out, Protocol):
    """Where an answer goes: one ``whole``, or ``begin`` and then ``write``; and where the request's body comes from."""

    async def body(self, most_bytes: int) -> bytes:
        """Read the request's body; only once it is known who sends it.

        Raises:
            StatusError: it is longer than ``most_bytes``.
        """
        ...

    async def whole(self, answer: Answer) -> None:
        """Send a whole response."""
        ...


@dataclass(slots=True)
class _Line:
    """One request's line in the log, as far as it is known."""

    asked: Asked
    user: str = ""
    question: Question | None = None
    fields: dict[str, object] = field(default_factory=dict)


class Access:
    """Make it in the running loop."""

    def __init__(
        self, manager: AccessSources, *, log: Log, bounds: Bounds | None = None, elsewhere: Elsewhere | None = None
    ) -> None:
        """``elsewhere``: what other managers know, where several work at once."""
        self._manager = manager
        self._elsewhere = elsewhere
        self._log = log
        self._bounds = bounds or Bounds()
        self._reviews = Reviews(manager.management)
        self._mirrors = Mirrors(manager.sources, manager.workers, origin=manager.transform.origin, bounds=self._bounds)
        self._logs = Logs(self._mirrors, self._bounds)
        self._comparing = Comparing()
        along = GoingAlong(manager.management, self._reviews, manager.transform.dependencies, self._bounds)
        looking = Looking(self._mirrors, self._reviews, along, manager.transform)
        self._differing = Differing(manager, self._mirrors, looking, self._comparing)
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

    def bodies(self, kind: Kind, key: SourceKey) -> tuple[Object, Object | None, str]:
        """A source and its mirror, or why it cannot be seen; only for whose rights are sure.

        Raises:
            StatusError: there is no such source.
        """
        source = self._mirrors.source(kind, key.namespace, key.name)
        try:
            mirror = self._mirrors.mirror(kind, source).found
        except StatusError as missing:
            return source, None, missing.message
        return (source, None, "it is too large") if isinstance(mirror, Partial) else (source, mirror, "")

    async def _decide(
        self, asked: Asked, reply: Reply, line: _Line, stack: AsyncExitStack
    ) -> Callable[[Reply], Awaitable[None]]:
        """What to send; what has to stay open for it is on the stack.

        Raises:
            StatusError: it is not sent.
        """
        try:
            async with asyncio.timeout(self._seconds_to_decide(asked)):
                person, question = await self._admit(asked, line)
                kind = question.kind
                if kind is None:
                    answer = await self._about_draft(question, reply, person, line)
                else:
                    await self._require(person, _rights(kind, question))
                    if (owner := self._owner(kind, question, asked)) is not None:
                        return await self._pass_on(owner, kind, question, person, stack, line)
                    if question.what == "log":
                        return await self._open_log(self._mirror(kind, question), question, person, stack, line)
                    answer = await self._answer(kind, question, person)
                return _sending(whole(answer))
        except TimeoutError:
            raise StatusError(504, "no answer in time") from None
        except KubeError as error:  # an object in a cache that cannot be read: a worker may send anything
            raise StatusError(502, f"the stored object cannot be read: {describe(error)}") from error

    def _seconds_to_decide(self, asked: Asked) -> float:
        """Less where another manager waits for it, which would blame us for what did not answer here."""
        return self._bounds.peer_decide_seconds if PASSED_ON in asked.headers else self._bounds.decide_seconds

    async def _admit(self, asked: Asked, line: _Line) -> tuple[Person, Question]:
        """The caller and the request.

        Raises:
            StatusError: 400, 401, 404, 405, 429, 5xx.
        """
        authorization = asked.headers.get("authorization", "")
        if asked.certificate is not None and not authorization:
            person = self._reviews.person_of_certificate(asked.certificate)
        else:
            person = await self._reviews.person(authorization, self._held_against(asked))
        line.user = person.name
        if any(name.startswith(_PREFIX) for name in asked.headers):
            raise StatusError(400, "impersonation is not supported; use a token or a certificate of that user")
        question = request_parsing.read(asked, self._manager.kinds, self._bounds)
        line.question = question
        if not question.name:
            # Thousands of Jobs are gone through, or a long body: that takes its time.
            self._reviews.bound("list", person.name, LISTS_A_SECOND_OF_ONE, LISTS_AT_ONCE_OF_ONE)
        return person, question

    def _held_against(self, asked: Asked) -> tuple[Allowance, ...]:
        """Whom its token is held against, should it be refused."""
        passed_on = self._elsewhere.passed_on_by(asked) if self._elsewhere is not None else None
        return allowances(peer_of(asked.peer)) if passed_on is None else allowances_passed_on(*passed_on)

    async def _require(self, person: Person, rights: list[Permission]) -> None:
        for right in rights:
            await self._reviews.require(person, right)

    # -- what there is ------------------------------------------------------------------------------------------------

    async def _answer(self, kind: Kind, question: Question, person: Person) -> object:
        if not question.name:
            return self._list(kind, question)
        match question.what:
            case "pods":
                pods, token = await self._mirrors.pods(self._mirror(kind, question), self._page(question), person)
                items = [pod.shown() for pod in pods]
                return {"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": token}, "items": items}
            case "events":
                found, is_cut = await self._mirrors.events(self._mirror(kind, question), self._page(question), person)
                events = [event.shown() for event in found]
                return {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": events, "isCut": is_cut}
            case "diff":
                return await self._differing.of_source(kind, self._source(kind, question), person)
        return self._job(kind, question)

    def _source(self, kind: Kind, question: Question) -> Object:
        return self._mirrors.source(kind, question.namespace or "", question.name)

    def _mirror(self, kind: Kind, question: Question) -> Mirror:
        return self._mirrors.mirror(kind, self._source(kind, question))

    def _take_turn(self) -> None:
        """Go on only if not too many do what takes long; who has no right to it does not get here."""
        if not self._lists.acquire_nowait():
            raise StatusError(429, "too many requests for lists and drafts; retry in one second", retry_after_seconds=1)

    def _list(self, kind: Kind, question: Question) -> object:
        self._take_turn()
        most = question.page.most or self._bounds.items
        jobs = self._manager.known.jobs(question.namespace, kind=kind.name, most=most + 1)
        return {"items": jobs[:most], "isCut": len(jobs) > most}

    def _job(self, kind: Kind, question: Question) -> dict[str, object]:
        known = self._manager.known
        key = SourceKey(kind.name, question.namespace or "", question.name)
        found = known.job(key)
        if found is None:
            raise no_source(kind, key.namespace, key.name)
        obstacles = known.placement_obstacles(key) if found.state in ("Waiting", "Suspended") else {}
        waiting = "" if found.is_finished else found.because
        return {"job": found, "timeline": known.timeline(key), "waiting": waiting, "lacks": dict(obstacles)}

    async def _about_draft(self, question: Question, reply: Reply, person: Person, line: _Line) -> object:
        body = await reply.body(self._bounds.draft_bytes)
        kind, draft = await self._comparing.run(lambda: _draft(self._manager.kinds, body), len(body))
        line.fields |= {"kind": kind.name, "namespace": draft.metadata.namespace, "job": draft.metadata.name}
        await self._require(person, [_right("create", kind, draft.metadata.namespace)])
        self._take_turn()
        if question.what == "place":
            return self._manager.choice_for_draft(kind, draft)
        return await self._differing.of_draft(kind, draft, person)

    def _page(self, question: Question) -> request_parsing.Page:
        """Lists from workers are shorter than lists of Jobs."""
        most = min(question.page.most or self._bounds.items, self._bounds.items)
        return replace(question.page, most=most)

    # -- what another manager knows -----------------------------------------------------------------------------------

    def _owner(self, kind: Kind, question: Question, asked: Asked) -> Owner | None:
        """Who has to be asked; None: this manager answers. Raises StatusError, as ``Elsewhere.owner``."""
        if self._elsewhere is None or not question.name:
            return None
        return self._elsewhere.owner(kind, self._source(kind, question), question, asked)

    async def _pass_on(
        self, owner: Owner, kind: Kind, question: Question, person: Person, stack: AsyncExitStack, line: _Line
    ) -> Callable[[Reply], Awaitable[None]]:
        """Its answer; where it does not answer, what is known here of a Job itself, or one that waits, and what not."""
        assert self._elsewhere is not None
        line.fields["manager"] = owner.member
        if question.what == "log":
            stack.enter_context(self._logs.counted(person, question.namespace or ""))
            pod, pieces = await self._elsewhere.log(owner, kind, question, line.asked, stack, person=person.name)
            line.fields |= {"pod": pod, "worker": owner.worker}

            async def send(reply: Reply) -> None:
                await reply.begin(((WORKER_HEADER, owner.worker), (POD_HEADER, pod)))
                await self._logs.hand_on(pieces, reply, follow=question.log.follow)

            return send
        try:
            return _sending(
                Answer(200, await self._elsewhere.answer(owner, kind, question, line.asked, person=person.name))
            )
        except StatusError as refused:
            compares_here = question.what == "diff" and not owner.worker
            if refused.code in (401, 403) or (question.what and not compares_here):
                raise
            is_named = owner.member in refused.message
            missing = refused.message if is_named else f"{owner} has not answered: {refused.message}"
            if compares_here:
                compared = await self._differing.of_source(kind, self._source(kind, question), person)
                return _sending(whole({**compared, "note": missing}))
            return _sending(whole(self._job(kind, question) | {"unavailable": missing}))

    # -- logs ---------------------------------------------------------------------------------------------------------

    async def _open_log(
        self, mirror: Mirror, question: Question, person: Person, stack: AsyncExitStack, line: _Line
    ) -> Callable[[Reply], Awaitable[None]]:
        """Find the pod and open its log; what is left to do is to hand it on."""
        wanted, logs = question.log, self._logs
        line.fields["pod"] = wanted.pod
        stack.enter_context(logs.counted(person, question.namespace or ""))
        pod = await logs.pod(mirror, wanted, person)
        containers = logs.containers(pod, wanted)
        line.fields |= {"pod": pod.metadata.name, "container": ",".join(containers), "worker": mirror.worker.name}
        first = await stack.enter_async_context(logs.opened(mirror, pod, containers[0], wanted, person))

        async def send(reply: Reply) -> None:
            await reply.begin(((WORKER_HEADER, mirror.worker.name), (POD_HEADER, pod.metadata.name)))
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
        question = line.question or Question(None)
        fields: dict[str, object] = {
            "user": line.user or "(nobody known)",
            "peer": line.asked.peer,
            "verb": question.what or ("get" if question.name else "list") if line.question else line.asked.method,
            **({"kind": question.kind.name} if question.kind else {}),
            "namespace": question.namespace or "",
            "job": question.name,
            **line.fields,
            "verdict": "allowed" if code < 400 else "refused" if code < 500 else "failed",
            "code": code,
        }
        if because:
            fields["because"] = because
        self._log.bind(**fields).info("access")


def _rights(kind: Kind, question: Question) -> list[Permission]:
    """The permissions on the management cluster that a request needs."""
    namespace = question.namespace or ""
    if not question.name:
        return [_right("list", kind, namespace)]
    rights = [_right("get", kind, namespace, question.name)]
    match question.what:
        case "log":
            rights.append(Permission("get", "", "pods", "log", namespace=namespace))
        case "pods":
            rights.append(Permission("list", "", "pods", namespace=namespace))
        case "events":
            rights.append(Permission("list", "", "events", namespace=namespace))
    return rights


def _right(verb: str, kind: Kind, namespace: str, name: str = "") -> Permission:
    return Permission(verb, kind.resource.group, kind.resource.plural, name=name, namespace=namespace)


def _sending(answer: Answer) -> Callable[[Reply], Awaitable[None]]:
    return lambda reply: reply.whole(answer)


class _Typed(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


def _draft(kinds: Kinds, body: bytes) -> tuple[Kind, Object]:
    """The object in a request's body, and of which kind it is."""
    try:
        typed = msgspec.json.decode(body, type=_Typed)
    except JUNK:
        typed = _Typed()
    kind = kinds.of_type(typed.api_version, typed.kind)
    if kind is None:
        wanted = " or ".join(f"{one.resource.api_version} {one.resource.kind}" for one in kinds)
        raise StatusError(400, f"this is no {wanted}")
    try:
        draft = kind.draft(body)
    except BadDraft as error:
        raise StatusError(400, str(error)) from None
    namespace = draft.metadata.namespace
    if label_problems(namespace):
        raise StatusError(400, "metadata.namespace: required")
    return kind, draft
