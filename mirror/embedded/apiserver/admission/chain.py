"""Admission: built-in plugins and webhooks, in the order in which they see a write.

``mutate`` comes before the rules of the kind, ``validate`` after them. While a webhook is asked others may write: who
stores afterwards has to look whether the object is still what it was.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random
from uuid import UUID

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.admission import reviews
from mirror.embedded.apiserver.admission.attributes import Attributes
from mirror.embedded.apiserver.admission.calling import Caller, CallFailed, HttpsCaller
from mirror.embedded.apiserver.admission.webhooks import MUTATING, VALIDATING, Webhook, Webhooks, kind_for
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import (
    Json,
    StatusError,
    bad_request,
    failure,
    forbidden,
    internal,
    not_found,
)
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.patch import json_patch
from mirror.embedded.apiserver.side_thread import LARGE_BYTES, pure
from mirror.embedded.apiserver.storage.mvcc import Storage

__all__ = ["Admission", "Attributes"]

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

    def check_namespace(self, attributes: Attributes) -> None:
        """Whether its namespace still takes a new object, once nothing is awaited any more. Raises: StatusError."""
        check_lifecycle(self._storage, attributes)

    async def mutate(self, attributes: Attributes) -> list[str]:
        """Let everybody change what will be stored; gives warnings.

        Raises:
            StatusError: somebody objects, or cannot be asked.
        """
        check_lifecycle(self._storage, attributes)
        self._complete(attributes)
        hooks = self._mutating.all()
        if not hooks:
            return []
        warnings: list[str] = []
        again = await self._one_after_the_other(attributes, hooks, warnings)
        if again:
            self._complete(attributes)
            await self._one_after_the_other(attributes, [hook for hook in hooks if hook.uid in again], warnings)
        return warnings

    async def validate(self, attributes: Attributes) -> list[str]:
        """Let everybody look at what will be stored; gives warnings.

        Raises:
            StatusError: somebody objects, or cannot be asked.
        """
        if attributes.body is not None:
            validate_built_in(self._storage, attributes)
        hooks = self._validating.all()
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

    def _complete(self, attributes: Attributes) -> None:
        if attributes.body is not None:
            mutate_built_in(self._storage, attributes)

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
        attributes.is_changed = attributes.is_changed or has_changed
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


# Built-in plugins: NamespaceLifecycle, Priority, DefaultTolerationSeconds, RuntimeClass. They look at objects
# themselves, never at subresources.

_IMMORTAL = ("default", "kube-system", "kube-public")


def check_lifecycle(storage: Storage, attributes: Attributes) -> None:
    """Let pass what a namespace allows.

    Raises:
        StatusError: 404 or 403.
    """
    kind = attributes.kind
    if attributes.is_of_namespaces:
        if attributes.operation == "DELETE" and attributes.name in _IMMORTAL:
            raise forbidden(kind.plural, kind.group, attributes.name, "this namespace may not be deleted")
        return
    if not attributes.namespace or attributes.operation == "DELETE" or kind.group == "authorization.k8s.io":
        return
    record = storage.get("namespaces", "", attributes.namespace)
    if record is None:
        raise not_found("namespaces", "", attributes.namespace)
    if attributes.operation != "CREATE" or b'"Terminating"' not in record.raw:
        return
    if objects.decode(record.raw).get("status", {}).get("phase") != "Terminating":
        return
    why = f"unable to create new content in namespace {attributes.namespace} because it is being terminated"
    refused = forbidden(kind.plural, kind.group, attributes.name, why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {attributes.namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refused.status["details"]["causes"] = [cause]
    raise refused


_CLASSES = "priorityclasses.scheduling.k8s.io"
_NO_EXECUTE, _TOLERATION_SECONDS = "NoExecute", 300
_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PREEMPTING = "PreemptLowerPriority"
_BY_ADMISSION = "must not be provided in pod spec; priority admission controller computed"
_UNKNOWN = "Unknown"
"""What a refusal calls a pod that has no name."""


def mutate_built_in(storage: Storage, attributes: Attributes) -> None:
    """Complete a new or changed object, in place.

    Raises:
        StatusError: 403, a pod has a priority that is not its class's, or a class that is not there (of priority or of
            runtime; there are no RuntimeClasses).
    """
    body = attributes.body
    if body is None or attributes.subresource or not _is(attributes, "", "pods"):
        return
    spec = body["spec"]
    if attributes.operation == "CREATE":
        name = attributes.name or _UNKNOWN
        _set_priority(storage, name, spec)
        _check_runtime_class(spec.get("runtimeClassName"), name)
    elif attributes.old is not None:
        for name in ("priority", "preemptionPolicy"):
            if name not in spec and name in attributes.old["spec"]:
                spec[name] = attributes.old["spec"][name]
    _tolerate(spec)


def validate_built_in(storage: Storage, attributes: Attributes) -> None:
    """Look at an object as it will be stored.

    Raises:
        StatusError: 403 for a second default priority class, and for overhead, which only a RuntimeClass may give.
    """
    body = attributes.body
    if body is None or attributes.subresource:
        return
    is_new, name = attributes.operation == "CREATE", attributes.name
    if _is(attributes, "", "pods"):
        if is_new and body["spec"].get("overhead"):
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbidden("pods", "", name, why)
    elif _is(attributes, "scheduling.k8s.io", "priorityclasses") and body.get("globalDefault"):
        default = _default_class(storage)
        default_name = default["metadata"]["name"] if default else ""
        if default and (is_new or default_name != name):
            why = f"PriorityClass {default_name} is already marked as default. Only one default can exist"
            raise forbidden("priorityclasses", "scheduling.k8s.io", name, why)


def _is(attributes: Attributes, group: str, plural: str) -> bool:
    return (attributes.kind.group, attributes.kind.plural) == (group, plural)


def _set_priority(storage: Storage, name: str, spec: Json) -> None:
    wanted = spec.get("priorityClassName")
    if wanted:
        record = storage.get(_CLASSES, "", wanted)
        if record is None:
            raise forbidden("pods", "", name, f"no PriorityClass with name {wanted} was found")
        found: Json | None = objects.decode(record.raw)
    else:
        found = _default_class(storage)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    priority: int = found.get("value", 0) if found else 0
    policy: str = found.get("preemptionPolicy", _PREEMPTING) if found else _PREEMPTING
    given, given_policy = spec.get("priority", priority), spec.get("preemptionPolicy", policy)
    if given != priority:
        why = f"the integer value of priority ({given}) {_BY_ADMISSION} {priority} from the given PriorityClass name"
        raise forbidden("pods", "", name, why)
    if given_policy != policy:
        why = f"the string value of PreemptionPolicy ({given_policy}) {_BY_ADMISSION} {policy}"
        raise forbidden("pods", "", name, f"{why} from the given PriorityClass name")
    spec["priority"], spec["preemptionPolicy"] = priority, policy


def _check_runtime_class(wanted: str | None, name: str) -> None:
    if wanted == "":
        raise StatusError(failure(500, "", "resource name may not be empty"))
    if wanted is not None:
        raise forbidden("pods", "", name, f"pod rejected: RuntimeClass {quoted(wanted)} not found")


def _default_class(storage: Storage) -> Json | None:
    """The class that pods without one have; of several, the one with the least priority."""
    if not storage.count(_CLASSES, ""):
        return None
    classes = [objects.decode(record.raw) for record in storage.records(_CLASSES, None)]
    return min((one for one in classes if one.get("globalDefault")), key=lambda one: one.get("value", 0), default=None)


def _tolerate(spec: Json) -> None:
    """A pod stays for five minutes on a node that is not ready or cannot be reached, unless it says otherwise."""
    tolerations = spec.get("tolerations", [])
    added = [
        {"key": taint, "operator": "Exists", "effect": _NO_EXECUTE, "tolerationSeconds": _TOLERATION_SECONDS}
        for taint in _NODE_TAINTS
        if not any(
            one.get("key", "") in ("", taint) and one.get("effect", "") in ("", _NO_EXECUTE) for one in tolerations
        )
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]
