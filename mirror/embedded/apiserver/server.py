"""The API server: one request from authentication to its response. Knows no transport."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from mirror.embedded.apiserver import side_thread, watch
from mirror.embedded.apiserver.apimachinery.decoding.bodies import media_type_of
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
from mirror.embedded.apiserver.discovery import groups
from mirror.embedded.apiserver.messages import JSON_TYPE, Answer, Request, Response
from mirror.embedded.apiserver.registry import creation, deletion, listing, updates
from mirror.embedded.apiserver.registry.dependencies import Action, Dependencies
from mirror.embedded.apiserver.request import responses
from mirror.embedded.apiserver.request.info import (
    ActionKey,
    RequestInfo,
    RequestScope,
    action_of,
    check_representation,
    check_served,
    nowhere,
    request_info,
    scope_of,
)
from mirror.embedded.apiserver.request.options import PLAIN, check_timeout, format_of, format_of_errors
from mirror.embedded.apiserver.side_thread import LARGE_BYTES, SideThread, size_of
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.records import Unwritable
from mirror.embedded.podlogs import PodLogs

_log = logging.getLogger(__name__)

LARGEST_BODY = 3 * 2**20

_HANDLERS: Mapping[str, Callable[[Dependencies, RequestScope], Awaitable[Answer]]] = {
    "get": listing.get,
    "list": listing.list_objects,
    "watch": watch.watch,
    "create": creation.create,
    "update": updates.update,
    "patch": updates.patch,
    "delete": deletion.delete,
    "deletecollection": deletion.delete_collection,
}
"""What serves each verb that ``check_served`` lets pass."""


class FaultInjector(Protocol):
    """Faults: what may happen to a request before and after it is answered."""

    async def before(self, request: Request) -> None:
        """Raises StatusError for a response in place of the work, Dropped for none."""
        ...

    async def after(self, request: Request, answer: Answer) -> Answer:
        """What is sent instead of the response; raises Dropped."""
        ...


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
            if request.query:
                info = await side_thread.pure(thread, len(request.query), lambda: request_info(request))
                if not info.is_long_running:
                    check_timeout(request)
            else:
                info = request_info(request)
            user = self.dependencies.authorizer.impersonated(
                self.authenticator.authenticate(request), request.headers, info
            )
            self.dependencies.authorizer.check_request(user, info)
            scope = scope_of(request, info, user, self.dependencies.registry, thread=thread)
            if scope is None:
                return self._other(request, info)
            return await self._of_objects(scope, info.selected_name)
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

    async def _of_objects(self, scope: RequestScope, selected_name: str) -> Answer:
        request, thread = scope.request, scope.thread
        if len(request.body) > LARGEST_BODY:
            raise too_large(f"Request entity too large: limit is {LARGEST_BODY}")
        if thread is not None and thread.is_full and size_of(request) >= LARGE_BYTES:
            raise too_many_requests("there are too many large requests, please try again later")
        if len(request.body) > MOST_VALUES and await scope.pure(partial(exceeds_value_limit, request.body)):
            raise too_large(f"Request entity too large: limit is {MOST_VALUES} values")
        key = action_of(scope, self.actions)
        if key is None:
            check_served(scope, self.actions, selected_name=selected_name)
        check_representation(scope)
        scope.format = format_of(request)
        content_type = request.headers.get("content-type", JSON_TYPE)
        if content_type != JSON_TYPE and scope.verb == "create":
            # Before the options; an update looks at the options first.
            media_type_of(content_type)
        if key is not None:
            return await self._act(self.actions[key], scope)
        try:
            return await _HANDLERS[scope.verb](self.dependencies, scope)
        except StatusError as refused:
            return await self._refusal(request, refused, scope.warnings)

    async def _refusal(self, request: Request, refused: StatusError, warnings: Sequence[str]) -> Response:
        """Why it was not done; conflicts may be many."""
        form = format_of_errors(request)
        size = 0 if form == PLAIN else len(refused.status.get("message", ""))
        return await side_thread.pure(
            self.dependencies.side_thread, size, lambda: responses.of_refusal(refused, form, warnings)
        )

    async def _act(self, action: Action, scope: RequestScope) -> Answer:
        """A subresource, or an object, that is not just read and written."""
        is_dry_run = "All" in scope.request.all_parameters.get("dryRun", ())
        return await action(self.dependencies, scope, self.dependencies.context(scope.user, is_dry_run=is_dry_run))

    def _other(self, request: Request, info: RequestInfo) -> Response:
        """What names no object that is served; what was judged as a resource is nothing else either."""
        request = replace(request, path=info.path) if info.path != request.path else request
        found = None if info.parts else groups.answer_health(request) or self._discover(request, self.registry)
        return found or nowhere(request, self.registry)
