"""What admission is told of a write."""

from __future__ import annotations

from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.request.options import WriteOptions
from mirror.embedded.apiserver.request.scope import Call
from mirror.embedded.apiserver.webhooks.attributes import Attributes

CREATE, UPDATE = "CREATE", "UPDATE"


def attributes_of(call: Call, operation: str, body: Json, old: Json | None, wanted: WriteOptions) -> Attributes:
    """A new or a changed object, before or after admission may change it."""
    given: Json = {
        "kind": "CreateOptions" if operation == CREATE else "UpdateOptions",
        "apiVersion": "meta.k8s.io/v1",
    }
    if wanted.manager:
        given["fieldManager"] = wanted.manager
    if wanted.is_dry_run:
        given["dryRun"] = ["All"]
    if "fieldValidation" in call.request.query:
        given["fieldValidation"] = wanted.validation
    return Attributes(
        operation=operation,
        kind=call.kind,
        subresource=call.subresource,
        namespace=call.namespace,
        name=body["metadata"].get("name", "") if operation == CREATE else call.name,
        body=body,
        old=old,
        user=call.user,
        is_dry_run=wanted.is_dry_run,
        options=given,
    )
