"""The API server: who asks, for what, may they, and who answers. Knows no transport."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from mirror.embedded.apiserver import side_thread, watch
from mirror.embedded.apiserver.apimachinery.decoding.text import MOST_VALUES, exceeds_value_limit
from mirror.embedded.apiserver.apimachinery.errors import (
    StatusError,
    bad_request,
    internal,
    too_large,
    too_many_requests,
)
from mirror.embedded.apiserver.apimachinery.kinds import Registry
from mirror.embedded.apiserver.authn.authenticator import Authenticator
from mirror.embedded.apiserver.discovery import health
from mirror.embedded.apiserver.messages import Answer, Request, Response, User
from mirror.embedded.apiserver.registry import deletion, listing, writes
from mirror.embedded.apiserver.registry.dependencies import Action, Dependencies
from mirror.embedded.apiserver.request import responses
from mirror.embedded.apiserver.request.info import RequestInfo, Target, request_info, target_of
from mirror.embedded.apiserver.request.negotiation import PLAIN, format_of, format_of_errors
from mirror.embedded.apiserver.request.routing import ActionKey, action_of, check_served, nowhere, verb_of
from mirror.embedded.apiserver.request.scope import RequestScope
from mirror.embedded.apiserver.side_thread import LARGE_BYTES, SideThread, size_of
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.records import Unwritable
from mirror.embedded.podlogs import PodLogs

_log = logging.getLogger(__name__)

LARGEST_BODY = 3 * 2**20


class FaultInjector(Protocol):
    """Faults: what may happen to a request before and after it is answered."""

    async def before(self, request: Request) -> None: ...

    async def after(self, request: Request, answer: Answer) -> Answer: ...


class ApiServer:
    """Answers requests about everything that is in the registry."""

    def __init__(
        self,
        *,
        dependencies: Dependencies,
        authenticator: Authenticator,
        actions: Mapping[ActionKey, Action],
        discover: Callable[[Request, Registry], Response | None],
    ) -> None:
        self.dependencies = dependencies
        self.authenticator = authenticator
        self.actions = actions
        """May become more while the server runs (scales of custom resources)."""
        self.faults: FaultInjector | None = None
        self.at_its_end: list[Callable[[], None]] = []
        """Done by ``close``."""
        self._discover = discover

    @property
    def storage(self) -> Storage:
        """Where all objects are."""
        return self.dependencies.storage

    @property
    def registry(self) -> Registry:
        """Every kind that is served now."""
        return self.dependencies.registry

    def close(self) -> None:
        """Leave the storage alone from now on; another server may serve it."""
        for end in self.at_its_end:
            end()

    def use_thread(self, thread: SideThread | None) -> None:
        """Let large requests be worked on beside the event loop; not for virtual time, which waits for no thread."""
        self.dependencies = replace(self.dependencies, side_thread=thread)
        self.dependencies.admission.side_thread = thread

    def use_logs(self, logs: PodLogs) -> None:
        """Serve what containers write."""
        self.dependencies = replace(self.dependencies, logs=logs)

    async def handle(self, request: Request) -> Answer:
        """Answer a request; what is wrong with it, or with us, is a ``Status``."""
        try:
            if self.faults is None:
                return await self._answer(request)
            await self.faults.before(request)
            return await self.faults.after(request, await self._answer(request))
        except StatusError as refused:
            return responses.of_refusal(refused, PLAIN, ())

    async def _answer(self, request: Request) -> Answer:
        try:
            thread = self.dependencies.side_thread
            info = await side_thread.pure(thread, len(request.query), lambda: request_info(request))
            user = self.dependencies.authorizer.impersonated(
                self.authenticator.authenticate(request), request.headers, info
            )
            self.dependencies.authorizer.check_request(user, info)
            target = target_of(info, self.registry)
            if target is None:
                return self._other(request, info)
            return await self._of_objects(request, info, target, user)
        except StatusError as refused:
            return await self._refusal(request, refused, ())
        except Unwritable as error:
            _log.error("nothing was stored method=%s path=%s: %s", request.method, request.path, error)
            return responses.of_status(internal(str(error)).status)
        except RecursionError:
            # Some hundred levels; nothing is stored before all of it could be walked through.
            return responses.of_status(bad_request("the object is nested too deeply").status)
        except Exception:  # noqa: BLE001 - whatever a request does to us, its client gets an answer
            _log.exception("request failed method=%s path=%s", request.method, request.path)
            return responses.of_status(internal("unexpected error; the server's log has the details").status)

    async def _of_objects(self, request: Request, info: RequestInfo, target: Target, user: User) -> Answer:
        verb = verb_of(request, info.verb, target)
        if len(request.body) > LARGEST_BODY:
            raise too_large(f"Request entity too large: limit is {LARGEST_BODY}")
        thread, size = self.dependencies.side_thread, len(request.body)
        if thread is not None and thread.is_full and size_of(request) >= LARGE_BYTES:
            raise too_many_requests("there are too many large requests, please try again later")
        if await side_thread.pure(thread, size, lambda: exceeds_value_limit(request.body)):
            raise too_large(f"Request entity too large: limit is {MOST_VALUES} values")
        key = action_of(request, target, self.actions)
        if key is not None:
            return await self._act(self.actions[key], request, target, user)
        content_type = request.headers.get("content-type", "")
        check_served(target, verb, self.actions, selected_name=info.selected_name, content_type=content_type)
        scope = RequestScope(
            request,
            user,
            verb,
            target.kind,
            target.namespace,
            target.name,
            target.subresource,
            format_of(request),
            thread=thread,
        )
        if verb == "get":
            return await listing.get(self.dependencies, scope)
        try:
            return await self._done(scope, is_watch_path=target.is_watch)
        except StatusError as refused:
            return await self._refusal(request, refused, scope.warnings)

    async def _refusal(self, request: Request, refused: StatusError, warnings: Sequence[str]) -> Response:
        """Why it was not done; conflicts may be many."""
        form = format_of_errors(request)
        size = 0 if form.is_as_stored else len(refused.status.get("message", ""))
        return await side_thread.pure(
            self.dependencies.side_thread, size, lambda: responses.of_refusal(refused, form, warnings)
        )

    async def _done(self, scope: RequestScope, *, is_watch_path: bool) -> Answer:
        match scope.verb:
            case "list":
                return await listing.list_objects(self.dependencies, scope)
            case "watch":
                return await watch.watch(self.dependencies, scope, is_watch_path=is_watch_path)
            case "create":
                return await writes.create(self.dependencies, scope)
            case "update":
                return await writes.update(self.dependencies, scope)
            case "patch":
                return await writes.patch(self.dependencies, scope)
            case "delete":
                return await deletion.delete(self.dependencies, scope)
            case _:
                return await deletion.delete_collection(self.dependencies, scope)

    async def _act(self, action: Action, request: Request, target: Target, user: User) -> Answer:
        """A subresource, or an object, that is not just read and written."""
        deps = self.dependencies
        scope = RequestScope(
            request,
            user,
            "",
            target.kind,
            target.namespace,
            target.name,
            target.subresource,
            PLAIN,
            thread=deps.side_thread,
        )
        is_dry_run = "All" in request.all_parameters.get("dryRun", ())
        return await action(deps, scope, deps.context(user, is_dry_run=is_dry_run))

    def _other(self, request: Request, info: RequestInfo) -> Response:
        """What names no object that is served; what was judged as a resource is nothing else either."""
        request = replace(request, path=info.path) if info.path != request.path else request
        found = None if info.parts else health.answer(request) or self._discover(request, self.registry)
        return found or nowhere(request, self.registry)
