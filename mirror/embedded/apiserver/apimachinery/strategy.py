"""What is special about a kind, or about a subresource of one: its fields, defaults, rules and columns. Pure.

``registry`` calls it while it makes a stored object. ``Strategy`` has what is common to all, each of which a kind
replaces; built-in kinds are in ``resources``, those of definitions in ``crds``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from mirror.batch.feature_gates import DEFAULT_GATES, FeatureGates
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.messages import ADMIN, User

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What a rule may know beside the objects."""

    now: str
    """Whole seconds, as stored: ``2026-11-21T12:00:00Z``."""
    uid: str = ""
    """For a new object."""
    user: User = ADMIN
    gates: FeatureGates = DEFAULT_GATES
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """How a subresource, or the object itself, is changed: what is made of a request, and what is wrong with it.

    ``prepare(new, old, context)`` gives what will be stored: fields that this path cannot change are the old ones.
    ``check(new, old, context)`` gives the causes of a refusal.
    """

    prepare: Callable[[Json, Json, Context], Json]
    check: Callable[[Json, Json, Context], Sequence[Violation]]
    resets: tuple[tuple[str, ...], ...] = ()
    """Paths that this subresource never owns (server-side apply)."""
    verbs: tuple[str, ...] = ("get", "patch", "update")
    """What it is served for."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``; ``priority`` 0 is always shown, others with ``-o wide``."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Strategy:
    """A kind of whose fields nothing is known. All objects are decoded and canonical; results share nothing with them.

    ``registry`` itself takes care of: metadata.name/generateName/namespace/uid/creationTimestamp/resourceVersion/
    managedFields/selfLink, of deletionTimestamp, and of ``metadata`` rules that hold for every kind.
    """

    struct: str = ""
    """Its struct in ``schemas``; empty: it has a schema of its own (``schema``), or none."""
    subresources: Mapping[str, Update] = {}
    """``status`` and others that are read and written like the object; others are in ``resources.actions``."""
    allows_create_on_update: bool = False
    allows_unconditional_update: bool = True
    """Whether an update without resourceVersion is accepted."""
    has_graceful_deletion: bool = False
    selectable: Mapping[str, Callable[[Json], str]] = {}
    """Field selectors beside metadata.name and metadata.namespace."""
    selector_refusal: str = '"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    """The 400 for a field selector that the kind does not have; ``str.format`` with ``label``."""
    checks_metadata: bool = False
    """Whether ``check_create`` has the rules of metadata already; else they come after its own."""
    looks_at_rights: bool = False
    """Whether ``prepare_…`` needs the user's permissions, which are in storage: it stays in the loop then."""
    default_propagation: str = "Background"
    """What becomes of dependents when a delete does not say: ``Background`` or ``Orphan``; empty: it never has any, and
    no finalizer is ever added for them (Events)."""
    is_converted: bool = False
    """Whether its objects are stored in the form of another version; ``from_stored`` and ``to_stored`` tell how."""
    stored_group: str | None = None
    """The group of the kind as which it is stored, if that is another one; see ``Kind.refused_group``."""
    columns: Sequence[Column] = ()
    """Columns of a table beside the name, which is the first, unless the kind has its own rows; see ``cells``."""

    takes_long: bool = False
    """Whether judging an object may take long even if it is small."""

    def decode(self, body: Json) -> Json:
        """A new object with only known fields of right types."""
        return dict(body)

    def default(self, body: Json, context: Context) -> None:
        """Fill in what is not there, in place; also of what a patch made."""

    def default_applied(self, body: Json, context: Context) -> None:
        """The same of what server-side apply made, which nobody reads again before it is judged."""
        self.default(body, context)

    def prepare_create(self, body: Json, context: Context) -> Json:
        """A new object as it is validated and stored; its status is dropped where it has the subresource."""
        if "status" in self.subresources:
            body.pop("status", None)
        return body

    def check_create(self, body: Json, context: Context) -> Sequence[Violation]:
        """What is wrong with a new object."""
        return ()

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        """A changed object; its status is the old one where it has the subresource, its generation goes up."""
        if "status" in self.subresources:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        return new

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        """What is wrong with a change."""
        return ()

    def warnings(self, new: Json, old: Json | None, context: Context) -> Sequence[str]:
        """What is odd though accepted; ``Warning`` headers."""
        return ()

    def eased(self, new: Json, old: Json) -> Sequence[str]:
        """What would be refused, had it not been there before; told of a change that is refused, too."""
        return ()

    def delete_warnings(self, propagation: str | None) -> Sequence[str]:
        """``Warning`` headers of a delete; ``propagation`` is the policy that its options name, if they do."""
        return ()

    def grace_seconds(self, body: Json, wanted: int | None) -> int:
        """How long an object may take to go; 0: at once."""
        return 0

    def served(self, stored: Json) -> Json:
        """An object as answers show it; called before it is stored, since what is stored is what is shown."""
        return stored

    def begin_deletion(self, body: Json, context: Context) -> None:
        """Called when a delete has just marked an object that does not go at once; in place: phase, conditions, …"""

    def is_held(self, body: Json) -> bool:
        """Whether more than metadata.finalizers and its grace keeps a marked object (namespaces: spec.finalizers)."""
        return False

    def row_conditions(self, body: Json) -> list[Json]:
        """``conditions`` of its row in a table (pods that have ended)."""
        return []

    def from_stored(self, stored: Json) -> Json:
        """An object of this version, made of one as it is in storage; a new one if ``is_converted``."""
        return stored

    def to_stored(self, body: Json) -> Json:
        """The response on its way back."""
        return body

    def cells(self, body: Json, now: datetime) -> list[object]:
        """A row of the table, one cell for each of ``columns``, the name included."""
        return [body["metadata"]["name"]]
