"""What admission is told of a request."""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.messages import User


@dataclass(slots=True)
class Attributes:
    """One write before it is stored.

    ``body`` is what will be stored, None for a DELETE; whoever changes it sets ``is_changed``. ``old`` is what is
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

    @property
    def is_of_namespaces(self) -> bool:
        """Whether the object is a Namespace."""
        return (self.kind.group, self.kind.plural) == ("", "namespaces")

    @property
    def around(self) -> str:
        """The namespace that the request is about; empty for other objects of the whole cluster."""
        return self.name if self.is_of_namespaces else self.namespace
