"""``metadata.managedFields``: who wrote which field of an object, kept with every write.

``track`` is for all writes but server-side apply, which is ``patch.apply``. Entries are what clients see; what a
write changes belongs to its manager alone from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import canonical
from mirror.embedded.apiserver.managedfields import reconciling, sets, validating
from mirror.embedded.apiserver.managedfields.comparing import Comparison, Unownable, compared
from mirror.embedded.apiserver.managedfields.sets import Set

Json: TypeAlias = dict[str, Any]

UPDATE, APPLY = "Update", "Apply"
OLD_UPDATES = "ancient-changes"
_MOST_UPDATERS = 10
_UNKNOWN = "unknown"

_ROOT_FIELDS = frozenset(("apiVersion", "kind", "metadata"))
_META_FIELDS = frozenset(
    (
        *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation"),
        *("managedFields", "resourceVersion"),
    )
)
"""Fields that nobody owns."""


@dataclass(frozen=True, slots=True)
class FieldManager:
    """Whose an entry is. An applier has one entry for all versions, so it has no version."""

    name: str
    operation: str
    api_version: str
    subresource: str


@dataclass(slots=True)
class Owned:
    """What a manager owns, since when, and in which version the paths are."""

    fields: Set
    time: str | None
    api_version: str


OwnedByManager: TypeAlias = dict[FieldManager, Owned]


class BadEntries(ValueError):
    """Entries that cannot be read; says why."""


def track(new: Json, old: Json | None, kind: Kind, *, manager: str, subresource: str, now: str | None) -> None:
    """Note in the new object, in place, what this write has changed. ``old`` is None for an object that is created.

    ``now``: None for a scale, whose writers have no time.
    Both are canonical; what the server itself will change yet (``prepare``) is owned by nobody.
    """
    meta = new.setdefault("metadata", {})
    given = meta.pop("managedFields", None)
    managers = _known_managers(given, old, subresource)
    if old is not None and not managers:
        return
    managers = reconciled(managers, kind)
    wanted = _versions(kind)
    if wanted is not None:
        managers = {one: owned for one, owned in managers.items() if owned.api_version in wanted}
    if not kind.strategy.struct and validating.problems(new, shape_of(kind), allows_duplicates=True):
        return  # It does not fit where this subresource stores nothing; nothing is owned then.
    try:
        difference = filtered(differences(old, new, kind), resets(kind, subresource))
    except Unownable:
        return
    if managers and not difference.is_same:
        managers = take(managers, difference)
    if difference.modified or difference.added:
        me = FieldManager(manager or _UNKNOWN, UPDATE, kind.api_version, subresource)
        mine = managers.get(me)
        fields = difference.written if mine is None else sets.union(difference.written, mine.fields)
        managers[me] = Owned(fields, now, kind.api_version)
        if len(managers) > _MOST_UPDATERS:
            managers = _capped(managers)
    found = entries_of({one: owned for one, owned in managers.items() if owned.fields})
    if found:
        meta["managedFields"] = found


def reconciled(managers: OwnedByManager, kind: Kind) -> OwnedByManager:
    """The managers as the schema of a custom resource has them now; entries of its other versions stay as they are."""
    if kind.strategy.struct:
        return managers
    shape, found = shape_of(kind), {}
    for manager, owned in managers.items():
        fields = owned.fields
        if owned.api_version == kind.api_version:
            fields = reconciling.reconciled(fields, shape)
        found[manager] = owned if fields is owned.fields else Owned(fields, owned.time, owned.api_version)
    return found


def _known_managers(given: Any, old: Json | None, subresource: str) -> OwnedByManager:
    """The entries that count: those of the request, unless it has none or they are wrong."""
    stored = None if old is None else old["metadata"].get("managedFields")
    if subresource or given is None or given == stored:
        return _managers(stored)
    if given in ([], [{}]):
        return {}
    try:
        return managers_of(given) or _managers(stored)
    except BadEntries:
        return _managers(stored)


def managers_of(entries: Iterable[Json] | None) -> OwnedByManager:
    """The managers of the entries of an object.

    Raises:
        BadEntries: one of them is not as it should be.
    """
    entries = list(entries or ())
    for position, entry in enumerate(entries):
        operation, api_version = entry.get("operation"), entry.get("apiVersion") or ""
        if operation not in (UPDATE, APPLY):
            raise BadEntries("operation must be `Apply` or `Update`")
        if not api_version:
            raise BadEntries("apiVersion must not be empty")
        fields_type = entry.get("fieldsType")
        if fields_type != "FieldsV1":
            wrong = f"invalid fieldsType {fields_type}" if fields_type else "missing fieldsType"
            raise BadEntries(f"{wrong} in managed fields entry {position}")
    return _managers([{**entry, "fieldsV1": _set_of(entry.get("fieldsV1"))} for entry in entries])


def _managers(entries: Iterable[Json] | None) -> OwnedByManager:
    """The same of entries that are stored, and so are as they should be."""
    found: OwnedByManager = {}
    for entry in entries or ():
        operation, api_version = entry["operation"], entry["apiVersion"]
        version = "" if operation == APPLY else api_version
        manager = FieldManager(entry.get("manager") or "", operation, version, entry.get("subresource") or "")
        found[manager] = Owned(entry.get("fieldsV1") or {}, entry.get("time"), api_version)
    return found


def _set_of(fields: Any) -> Set:
    """What a client has written as a set, as one.

    Raises:
        BadEntries: it is none.
    """
    if fields is None:
        return {}
    if not isinstance(fields, dict):
        raise BadEntries("error decoding set: it is no map")
    found: Set = {}
    for element, below in fields.items():
        if element == sets.SELF:
            found[element] = {}
        elif element[1:2] != ":" or (element[0] == "k" and not sets.key_of(element)):
            raise BadEntries("error decoding set: parsing key as path element")
        elif element[0] in "fkvi":
            found[element] = _plain(_set_of(below))
    return found


def _plain(node: Set) -> Set:
    """A member with nothing below it is written without ``.``."""
    return {} if node.keys() == {sets.SELF} else node


def entries_of(managers: OwnedByManager) -> list[Json]:
    """The entries as they are stored: appliers first, then by time and name."""
    found = []
    for manager, owned in managers.items():
        entry: Json = {"manager": manager.name} if manager.name else {}
        entry["operation"], entry["apiVersion"] = manager.operation, owned.api_version
        if owned.time is not None:
            entry["time"] = owned.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = owned.fields
        if manager.subresource:
            entry["subresource"] = manager.subresource
        found.append(entry)
    if len(found) > 1:
        found.sort(key=_place)
    return found


def _place(entry: Json) -> tuple[str, ...]:
    names = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(entry.get(name, "") for name in names)


def take(managers: OwnedByManager, difference: Comparison) -> OwnedByManager:
    """What is left to the managers after fields were written by another, or are gone."""
    written = difference.written
    found: OwnedByManager = {}
    for manager, owned in managers.items():
        left = sets.difference(owned.fields, written) if written else owned.fields
        if difference.removed:
            left = sets.difference(left, difference.removed)
        if left:
            found[manager] = owned if left is owned.fields else Owned(left, owned.time, owned.api_version)
    return found


def _capped(managers: OwnedByManager) -> OwnedByManager:
    """Of many updaters, the oldest become one."""
    updaters = [one for one in managers if one.operation == UPDATE]
    if len(updaters) <= _MOST_UPDATERS:
        return managers
    updaters.sort(key=lambda one: (managers[one].time or "", one.name, one.api_version, one.subresource))
    found, count = dict(managers), len(updaters)
    first: dict[str, FieldManager] = {}
    for updater in updaters:
        if count <= _MOST_UPDATERS:
            break
        version = updater.api_version
        if version not in first:
            first[version] = updater
            continue
        bucket = FieldManager(OLD_UPDATES, UPDATE, version, "")
        if bucket not in found:
            found[bucket] = found.pop(first[version])
        mine = found.pop(updater)
        found[bucket] = Owned(sets.union(mine.fields, found[bucket].fields), mine.time, version)
        count -= 1
    return found


def differences(old: Json | None, new: Json, kind: Kind) -> Comparison:
    """How the objects differ, without the fields that nobody owns."""
    shape = shape_of(kind)
    if old is None:
        old = empty(kind)
    rest = compared(old, new, shape, ignored=_ROOT_FIELDS)
    meta = compared(old.get("metadata") or {}, new.get("metadata") or {}, _META_SHAPE, ignored=_META_FIELDS)
    for part, whole in ((meta.removed, rest.removed), (meta.modified, rest.modified), (meta.added, rest.added)):
        if part:
            whole["f:metadata"] = part
    return rest


def without_unowned(fields: Set) -> Set:
    """A set without the fields that nobody owns."""
    found = {element: below for element, below in fields.items() if element not in ("f:apiVersion", "f:kind")}
    meta = found.pop("f:metadata", None)
    if meta:
        kept = {element: below for element, below in meta.items() if element[2:] not in _META_FIELDS and element != "."}
        if kept:
            found["f:metadata"] = kept
    return found


def filtered(difference: Comparison, paths: tuple[tuple[str, ...], ...]) -> Comparison:
    """Without what this subresource cannot change."""
    removed, modified, added = difference.removed, difference.modified, difference.added
    for path in paths:
        removed = sets.without(removed, path)
        modified = sets.without(modified, path)
        added = sets.without(added, path)
    return Comparison(removed, modified, added)


def resets(kind: Kind, subresource: str) -> tuple[tuple[str, ...], ...]:
    """The paths that are never owned by who writes the object, or this subresource of it."""
    if subresource:
        update = kind.strategy.subresources.get(subresource)
        if update is None:
            return ()
        return update.resets or (() if kind.strategy.struct or subresource != "status" else _RESET_BY_CUSTOM_STATUS)
    return (("status",),) if "status" in kind.strategy.subresources else ()


def shape_of(kind: Kind) -> sets.Struct:
    """How the fields of a kind are owned."""
    if kind.strategy.struct:
        return sets.of_struct(kind.strategy.struct)
    found = getattr(kind.strategy, "shape", None)
    return found if isinstance(found, sets.Struct) else _DEDUCED


def _versions(kind: Kind) -> frozenset[str] | None:
    """The versions in which entries of this kind can be; None: any."""
    if not kind.strategy.struct:
        return None
    return _EVENTS if kind.kind == "Event" else frozenset((kind.api_version,))


_RESET_BY_CUSTOM_STATUS = (("metadata",), ("spec",))
_EVENTS = frozenset(("v1", "events.k8s.io/v1"))
_META_SHAPE = sets.of_struct("ObjectMeta")
_DEDUCED = sets.of_schema({"type": "object"})


def empty(kind: Kind) -> Json:
    """A new object in which nothing is set. Not to be changed."""
    return _empty(kind.strategy.struct)


@cache
def _empty(struct: str) -> Json:
    return canonical({}, struct) if struct else {"metadata": {}}
