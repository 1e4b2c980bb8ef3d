"""The life of namespaces: nothing new comes into one that is not there, or that goes (NamespaceLifecycle)."""

from __future__ import annotations

from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import forbidden, not_found
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.webhooks.attributes import Attributes

_IMMORTAL = ("default", "kube-system", "kube-public")


def check(storage: Storage, attributes: Attributes) -> None:
    """Let pass what a namespace allows.

    Raises:
        Refused: 404 or 403.
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
