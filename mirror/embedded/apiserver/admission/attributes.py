"""What admission knows of a request."""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.messages import User
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.request.options import WriteOptions
from mirror.embedded.apiserver.side_thread import SideThread


@dataclass(slots=True)
class Attributes:
    """One write before it is stored.

    ``body`` is what will be stored, None for a DELETE; a plugin that changes it sets ``is_changed``. ``old`` is what is
    stored now, None for a CREATE. Neither is shared with the store.
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
    is_changed: bool = False
    thread: SideThread | None = None
    """Where patches of webhooks are carried out; None: in the loop."""

    @property
    def is_of_namespaces(self) -> bool:
        """Whether the object is a Namespace."""
        return (self.kind.group, self.kind.plural) == ("", "namespaces")

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
