"""Admission: built-in plugins and webhooks, in the order in which they see a write.

``mutate`` comes before the rules of the kind, ``validate`` after them. While a webhook is asked others may write: who
stores afterwards has to look whether the object is still what it was.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from random import Random
from uuid import UUID

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.admission import reviews
from mirror.embedded.apiserver.admission.calling import Caller, CallFailed, HttpsCaller
from mirror.embedded.apiserver.admission.plugins import Attributes, check_lifecycle, mutate_built_in, validate_built_in
from mirror.embedded.apiserver.admission.webhooks import MUTATING, VALIDATING, Webhook, kind_for
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, bad_request, internal
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.patch import json_patch
from mirror.embedded.apiserver.side_thread import LARGE_BYTES, pure
from mirror.embedded.apiserver.storage.mvcc import Storage

_log = logging.getLogger(__name__)

ServiceAddress = Callable[[str, str, int], str | None]
"""Where a service (namespace, name, port) is: ``host:port``, or None if there is no such service."""


class Admission:
    """Built-in plugins and webhooks."""

    def __init__(
        self,
        *,
        storage: Storage,
        registry: Registry,
        random: Random,
        context: Callable[[], Context],
        caller: Caller | None = None,
        service_address: ServiceAddress = lambda namespace, name, port: None,
    ) -> None:
        self._storage = storage
        self._registry = registry
        self._random = random
        self._context = context
        self._caller = caller or HttpsCaller()
        self._service_address = service_address
        self._mutating = Webhooks(storage, MUTATING)
        self._validating = Webhooks(storage, VALIDATING)

    async def mutate(self, attributes: Attributes) -> list[str]:
        """Let everybody change what will be stored; gives warnings.

        Raises:
            StatusError: somebody objects, or cannot be asked.
        """
        hooks = self._mutating.all()
        check_lifecycle(self._storage, attributes)
        mutate_built_in(self._storage, attributes)
        if not hooks:
            return []
        warnings: list[str] = []
        again = await self._one_after_the_other(attributes, hooks, warnings)
        if again:
            mutate_built_in(self._storage, attributes)
            await self._one_after_the_other(attributes, [hook for hook in hooks if hook.uid in again], warnings)
        return warnings

    async def validate(self, attributes: Attributes) -> list[str]:
        """Let everybody look at what will be stored; gives warnings.

        Raises:
            StatusError: somebody objects, or cannot be asked.
        """
        hooks = self._validating.all()
        validate_built_in(self._storage, attributes)
        if not hooks:
            return []
        asked = [
            (hook, kind)
            for hook in hooks
            if (kind := kind_for(hook, attributes, self._registry, self._storage)) is not None
        ]
        answers = await asyncio.gather(*(self._ask_validating(hook, attributes, kind) for hook, kind in asked))
        refusals = [answer for answer in answers if isinstance(answer, StatusError)]
        if refusals:
            raise refusals[0]
        return [warning for answer in answers if not isinstance(answer, StatusError) for warning in answer]

    async def _one_after_the_other(self, attributes: Attributes, hooks: list[Webhook], warnings: list[str]) -> set[str]:
        """Ask mutating webhooks; gives those that want to be asked again, since later ones have changed something."""
        before: set[str] = set()
        again: set[str] = set()
        for hook in hooks:
            kind = kind_for(hook, attributes, self._registry, self._storage)
            if kind is None:
                continue
            has_changed, told = await self._ask_mutating(hook, attributes, kind)
            warnings.extend(told)
            if has_changed:
                again |= before
                before.clear()
            if hook.is_called_again:
                before.add(hook.uid)
        return again

    async def _ask_mutating(self, hook: Webhook, attributes: Attributes, kind: Kind) -> tuple[bool, tuple[str, ...]]:
        verdict = await self._ask(hook, attributes, kind, is_mutating=True)
        if verdict is None:
            return False, ()
        if not verdict.is_allowed:
            raise reviews.denied(hook, verdict.status)
        if not verdict.operations:
            return False, verdict.warnings
        if attributes.body is None:
            why = "attempted to modify the object, which is not supported for this operation"
            raise internal(f"admission webhook {quoted(hook.name)} {why}")
        operations = verdict.operations
        has_changed = await pure(attributes.thread, LARGE_BYTES, lambda: self._patch(attributes, operations))
        return has_changed, verdict.warnings

    def _patch(self, attributes: Attributes, operations: list[Json]) -> bool:
        """Change what will be stored; whether that made a difference."""
        assert attributes.body is not None
        kind, strategy = attributes.kind, attributes.kind.strategy
        before = attributes.body | {"apiVersion": kind.api_version, "kind": kind.kind}
        try:
            patched = json_patch.patched(before, operations)
        except json_patch.DoesNotApply as error:
            raise internal(str(error)) from error
        if not isinstance(patched, dict):
            raise internal("the patch of an admission webhook leaves no object")
        after = strategy.decode(patched)
        strategy.default(after, self._context())
        has_changed = not json_patch.same(strategy.decode(before), after)
        attributes.body = after
        return has_changed

    async def _ask_validating(self, hook: Webhook, attributes: Attributes, kind: Kind) -> tuple[str, ...] | StatusError:
        try:
            verdict = await self._ask(hook, attributes, kind, is_mutating=False)
        except StatusError as refused:
            return refused
        if verdict is None:
            return ()
        return verdict.warnings if verdict.is_allowed else reviews.denied(hook, verdict.status)

    async def _ask(
        self, hook: Webhook, attributes: Attributes, kind: Kind, *, is_mutating: bool
    ) -> reviews.Verdict | None:
        """RequestScope a webhook; None if that failed and does not matter.

        Raises:
            StatusError: it failed and matters; or a dry run would have effects.
        """
        if attributes.is_dry_run and not hook.may_be_called_on_dry_run:
            raise bad_request(f"admission webhook {quoted(hook.name)} does not support dry run")
        try:
            return await self._call(hook, attributes, kind, is_mutating=is_mutating)
        except CallFailed as error:
            why = f"failed to call webhook: {error}"
        except reviews.BadReview as error:
            why = f"received invalid webhook response: {error}"
        text = f"failed calling webhook {quoted(hook.name)}: {why}"
        _log.warning("%s%s", text, " (ignored)" if hook.fails_open else "")
        if hook.fails_open:
            return None
        raise internal(text)

    async def _call(self, hook: Webhook, attributes: Attributes, kind: Kind, *, is_mutating: bool) -> reviews.Verdict:
        version = reviews.version_for(hook)
        if version is None:
            raise CallFailed("webhook does not accept known AdmissionReview versions (v1, v1beta1)")
        uid = str(UUID(int=self._random.getrandbits(128), version=4))
        url, address = self._where(hook)
        answer = await self._caller.post(
            url,
            reviews.question(version, uid, attributes, kind),
            authorities=hook.authorities,
            seconds=hook.timeout_seconds,
            address=address,
        )
        return reviews.verdict(answer, version, uid, is_mutating=is_mutating)

    def _where(self, hook: Webhook) -> tuple[str, str]:
        """The URL of a webhook, and where to connect for it if not to the URL's host."""
        client = hook.body["clientConfig"]
        service = client.get("service")
        if service is None:
            return str(client["url"]), ""
        namespace, name, port = service["namespace"], service["name"], service.get("port", 443)
        url = f"https://{name}.{namespace}.svc:{port}{service.get('path') or '/'}"
        address = self._service_address(namespace, name, port)
        if address is None:
            raise CallFailed(f'Post "{url}?timeout={hook.timeout_seconds}s": service {quoted(name)} not found')
        return url, address


class Webhooks:
    """The webhooks of one kind of configuration; read from the store anew when one of them has changed."""

    def __init__(self, storage: Storage, stored_as: str) -> None:
        self._storage = storage
        self._of = stored_as
        self._read_at = 0
        self._hooks: list[Webhook] = []

    def all(self) -> list[Webhook]:
        """By the names of their configurations, then as these list them."""
        changed = self._storage.changed(self._of)
        if changed != self._read_at:
            records = sorted(self._storage.records(self._of, None), key=lambda record: record.name)
            self._hooks = [hook for record in records for hook in _of(record.name, objects.decode(record.raw))]
            self._read_at = changed
        return self._hooks


def _of(configuration: str, body: Json) -> Iterable[Webhook]:
    for webhook in body.get("webhooks") or ():
        yield Webhook(f"{configuration}/{webhook['name']}", webhook)
