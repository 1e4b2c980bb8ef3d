"""A write as admission sees it, and the built-in plugins: NamespaceLifecycle, Priority, DefaultTolerationSeconds,
RuntimeClass. These look at objects themselves, never at subresources; ``chain`` calls them before webhooks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, failure, forbidden, not_found
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.messages import User
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.request.options import WriteOptions
from mirror.embedded.apiserver.side_thread import SideThread
from mirror.embedded.apiserver.storage.mvcc import Storage


@dataclass(slots=True)
class Attributes:
    """One write before it is stored.

    ``body`` is what will be stored, None for a DELETE. ``old`` is what is stored now, None for a CREATE. Neither is
    shared with storage.
    """

    operation: str
    """CREATE, UPDATE, DELETE or CONNECT."""
    kind: Kind
    subresource: str
    namespace: str
    name: str
    body: Json | None
    old: Json | None
    user: User
    is_dry_run: bool = False
    options: Json = field(default_factory=dict)
    thread: SideThread | None = None
    """Where patches of webhooks are carried out; None: in the loop."""

    @property
    def is_of_namespaces(self) -> bool:
        """Whether the object is a Namespace."""
        return self.kind.resource == "namespaces"

    @property
    def around(self) -> str:
        """The namespace that the request is about; empty for other objects of the whole cluster."""
        return self.name if self.is_of_namespaces else self.namespace


CREATE, UPDATE = "CREATE", "UPDATE"


def attributes_of(
    scope: RequestScope, operation: str, body: Json, old: Json | None, wanted: WriteOptions
) -> Attributes:
    """A new or a changed object, before or after admission may change it."""
    given: Json = {
        "kind": "CreateOptions" if operation == CREATE else "UpdateOptions",
        "apiVersion": "meta.k8s.io/v1",
    }
    if wanted.manager:
        given["fieldManager"] = wanted.manager
    if wanted.is_dry_run:
        given["dryRun"] = ["All"]
    if "fieldValidation" in scope.request.query:
        given["fieldValidation"] = wanted.validation
    return Attributes(
        operation=operation,
        kind=scope.kind,
        subresource=scope.subresource,
        namespace=scope.namespace,
        name=body["metadata"].get("name", "") if operation == CREATE else scope.name,
        body=body,
        old=old,
        user=scope.user,
        is_dry_run=wanted.is_dry_run,
        options=given,
        thread=scope.thread,
    )


# Built-in plugins.

_IMMORTAL = ("default", "kube-system", "kube-public")


def check_lifecycle(storage: Storage, attributes: Attributes) -> None:
    """Let pass what a namespace and a definition that is going allow.

    Raises:
        StatusError: 404 or 403.
    """
    kind = attributes.kind
    if kind.is_ending and attributes.operation == CREATE:
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(kind.plural, kind.group, attributes.name, why)
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
    if body is None or attributes.subresource or attributes.kind.resource != "pods":
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
    if attributes.kind.resource == "pods":
        if is_new and body["spec"].get("overhead"):
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbidden("pods", "", name, why)
    elif attributes.kind.resource == _CLASSES and body.get("globalDefault"):
        default = _default_class(storage)
        default_name = default["metadata"]["name"] if default else ""
        if default and (is_new or default_name != name):
            why = f"PriorityClass {default_name} is already marked as default. Only one default can exist"
            raise forbidden("priorityclasses", "scheduling.k8s.io", name, why)


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
