"""Server-side apply: an object names the fields that its applier sets, and so owns.

What its applier applied before and no longer does is removed, unless somebody else owns it; what somebody else owns
and would be changed is a conflict, unless it is forced. The rules are those of structured-merge-diff
(``managedfields``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery import errors
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import copied
from mirror.embedded.apiserver.managedfields import comparing, field_manager, merging, sets, validating
from mirror.embedded.apiserver.managedfields.comparing import Unownable
from mirror.embedded.apiserver.managedfields.field_manager import FieldManager, Owned, OwnedByManager
from mirror.embedded.apiserver.managedfields.sets import Set

Json: TypeAlias = dict[str, Any]

BEFORE_FIRST_APPLY = "before-first-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL = "kubectl"
_MARKUP = re.compile("[<>&]")
"""What Go escapes in JSON."""


@dataclass(frozen=True, slots=True)
class Applicant:
    """Who applies, to which part, and when."""

    manager: str
    subresource: str
    now: str
    force: bool = False


def apply(patch: Json, current: Json | None, kind: Kind, applicant: Applicant) -> Json:
    """The object as it is after applying, with its managers; not yet decoded. Nothing that is given is changed.

    Raises:
        StatusError: 400 for an object that may not be applied here, 409 with a cause for every conflict, 500 if it does
            not fit the kind, as upstream has it.
    """
    _check_identity(patch, kind)
    manager, applying = applicant.manager, _Applying(kind, applicant.subresource, applicant.now)
    try:
        found = applying.run(patch, current, manager, force=applicant.force)
    except Unownable:
        raise _untracked(current or {}, kind, applying.shape) from None
    except _Conflicts as conflicts:
        found = _despite(conflicts, applying, patch, current, manager)
    if manager == _KUBECTL and _last_applied(found):
        found["metadata"]["annotations"][LAST_APPLIED] = _recorded(patch)
    return found


def _untracked(live: Json, kind: Kind, shape: sets.Struct) -> errors.StatusError:
    """500: the object that is there has something that nobody can own."""
    wrong = validating.describe(validating.problems(live, shape, allows_duplicates=True))
    if live["metadata"].get("managedFields"):
        return internal(f"failed to create typed live object ({described(live, kind)}): {wrong}")
    return internal(
        "failed to create manager for existing fields: "
        f"failed to convert new object ({described(live, kind)}) to smd typed: {wrong}"
    )


def _despite(conflicts: _Conflicts, applying: _Applying, patch: Json, current: Json | None, manager: str) -> Json:
    """kubectl may take what it owns through client-side apply.

    Raises:
        StatusError: 409, there is more.
    """
    allowed = _allowed(current, applying.kind, applying.shape) if manager == _KUBECTL else None
    if allowed is None:
        raise conflicts.refused()
    left = [(owner, path) for owner, path in conflicts.found if not _has(allowed, path)]
    if left:
        raise _Conflicts(left).refused()
    return applying.run(patch, current, manager, force=True)


def _check_identity(patch: Json, kind: Kind) -> None:
    own_version, own_kind = patch.get("apiVersion"), patch.get("kind")
    if own_version == kind.api_version and own_kind == kind.kind:
        meta = patch.get("metadata")
        if isinstance(meta, dict) and meta.get("managedFields") is not None:
            raise errors.bad_request("metadata.managedFields must be nil")
        return
    own_version, own_kind = (one if isinstance(one, str) else "" for one in (own_version, own_kind))
    if own_version.count("/") > 1:
        own_version = own_kind = ""
    group, _, version = own_version.rpartition("/")
    raise errors.bad_request(f"invalid object type: {group}/{version}, Kind={own_kind}")


class _Applying:
    """One request."""

    def __init__(self, kind: Kind, subresource: str, now: str) -> None:
        self.kind, self._subresource, self._now = kind, subresource, now
        self.shape = field_manager.shape_of(kind)

    def run(self, patch: Json, current: Json | None, name: str, *, force: bool) -> Json:
        """The object and its managers.

        Raises:
            _Conflicts: others own what would be changed, and it is not forced.
        """
        live = _without_managers(current) if current is not None else field_manager.empty(self.kind)
        managers = self._managers(current)
        wrong = validating.problems(patch, self.shape)
        if wrong:
            who = described(patch, self.kind)
            raise internal(f"failed to create typed patch object ({who}): {validating.describe(wrong)}")
        me = FieldManager(name or "unknown", field_manager.APPLY, "", self._subresource)
        found = merging.merged(live, patch, self.shape)
        last = managers.get(me)
        fields = comparing.fields_of(patch, self.shape)
        for path in field_manager.resets(self.kind, self._subresource):
            fields = sets.without(fields, path)
        managers[me] = Owned(fields, last.time if last else None, self.kind.api_version)
        if last is not None and last.fields:
            found = self._pruned(found, last.fields, managers)
        managers = self._taken(live, found, managers, me, force=force)
        is_changed = not comparing.same(live, found)
        mine = managers.pop(me, None)
        own = field_manager.without_unowned(fields)
        if own:
            time = self._now if is_changed or mine is None else mine.time
            managers[me] = Owned(own, time, self.kind.api_version)
        result: Json = copied(found if is_changed else live)
        entries = field_manager.entries_of(managers)
        if entries:
            result["metadata"] = {**(result.get("metadata") or {}), "managedFields": entries}
        return result

    def _managers(self, current: Json | None) -> OwnedByManager:
        if current is None:
            return {}
        try:
            managers = field_manager.managers_of(current["metadata"].get("managedFields"))
        except field_manager.BadEntries as error:
            raise internal(f"failed to decode managed fields: {error}") from error
        if managers:
            return field_manager.reconciled(managers, self.kind)
        difference = field_manager.differences(None, current, self.kind)
        difference = field_manager.filtered(difference, field_manager.resets(self.kind, self._subresource))
        if not difference.added and not difference.modified:
            return {}
        before = FieldManager(BEFORE_FIRST_APPLY, field_manager.UPDATE, self.kind.api_version, self._subresource)
        return {before: Owned(difference.written, self._now, self.kind.api_version)}

    def _pruned(self, merged: Json, last: Set, managers: OwnedByManager) -> Json:
        """Without what this applier wanted last time, unless it or another still owns it."""
        shape = self.shape
        named = merging.with_named_members
        everything = named(comparing.fields_of(merged, shape), shape)
        less = merging.removed(merged, named(last, shape), shape) or {}
        kept = named(comparing.fields_of(less, shape), shape)
        owned: Set = {}
        for one in managers.values():
            owned = sets.union(owned, one.fields)
        gone = sets.difference(everything, sets.union(kept, named(owned, shape)))
        less = merging.removed(merged, gone, shape) or {}
        # What was below something that went, but was nobody's, stays.
        left = named(comparing.fields_of(less, shape), shape)
        gone = sets.intersection(sets.difference(everything, left), named(last, shape))
        found: Json = merging.removed(merged, gone, shape) or {}
        return found

    def _taken(
        self, live: Json, found: Json, managers: OwnedByManager, me: FieldManager, *, force: bool
    ) -> OwnedByManager:
        """The managers after this applier has taken what it changes.

        Raises:
            _Conflicts: it is others', and not forced.
        """
        difference = comparing.compared(live, found, self.shape)
        difference = field_manager.filtered(difference, field_manager.resets(self.kind, self._subresource))
        others = {one: owned for one, owned in managers.items() if one != me}
        written = difference.written
        conflicts = [
            (one, path)
            for one in sorted(others, key=_identity)
            for path in sets.paths(sets.intersection(others[one].fields, written))
        ]
        if conflicts and not force:
            raise _Conflicts(conflicts)
        return {**field_manager.take(others, difference), me: managers[me]}


class _Conflicts(Exception):
    """Fields that others own, each with its manager."""

    def __init__(self, found: list[tuple[FieldManager, tuple[str, ...]]]) -> None:
        super().__init__(f"{len(found)} conflicts")
        self.found = found

    def refused(self) -> errors.StatusError:
        """409 with a cause for every conflict."""
        causes = [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {_described(owner)}",
                "field": sets.shown(path),
            }
            for owner, path in self.found
        ]
        if len(self.found) == 1:
            owner, path = self.found[0]
            message = f"Apply failed with 1 conflict: conflict with {_described(owner)}: {sets.shown(path)}"
        else:
            lines: list[str] = []
            for owner in dict.fromkeys(owner for owner, _ in self.found):
                lines.append(f"conflicts with {_described(owner)}:")
                lines.extend(f"- {sets.shown(path)}" for one, path in self.found if one == owner)
            message = f"Apply failed with {len(self.found)} conflicts: " + "\n".join(lines)
        return errors.StatusError(errors.failure(409, "Conflict", message, {"causes": causes}))


def _identity(manager: FieldManager) -> str:
    """By which managers are sorted: the JSON of what tells them apart."""
    parts = {"manager": manager.name, "operation": manager.operation, "apiVersion": manager.api_version}
    named = {**parts, "subresource": manager.subresource}
    return msgspec.json.encode({name: value for name, value in named.items() if value}).decode()


def _described(manager: FieldManager) -> str:
    text = quoted(manager.name)
    if manager.subresource:
        text += f" with subresource {quoted(manager.subresource)}"
    return f"{text} using {manager.api_version}" if manager.operation == field_manager.UPDATE else text


def _allowed(current: Json | None, kind: Kind, shape: sets.Struct) -> Set | None:
    """What kubectl owns through its annotation of client-side apply, and may take; None: there is no such thing."""
    recorded = _last_applied(current or {})
    try:
        found = msgspec.json.decode(recorded.encode()) if recorded else None
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(found, dict) or current is None or found.get("apiVersion") != kind.api_version:
        return None
    if validating.problems(found, shape):
        return None
    difference = comparing.compared(found, _without_managers(current), shape)
    fields = comparing.fields_of(found, shape)
    for gone in (difference.modified, difference.added, difference.removed):
        fields = sets.difference(fields, gone)
    return fields


def _has(fields: Set, path: tuple[str, ...]) -> bool:
    for element in path:
        below = fields.get(element)
        if below is None:
            return False
        fields = below
    return sets.is_member(fields)


def _last_applied(body: Json) -> str:
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    found = annotations.get(LAST_APPLIED)
    return found if isinstance(found, str) else ""


def _recorded(patch: Json) -> str:
    """The applied object as the annotation keeps it, without the annotation itself."""
    meta = dict(patch.get("metadata") or {})
    if meta.get("annotations"):
        meta["annotations"] = {name: value for name, value in meta["annotations"].items() if name != LAST_APPLIED}
    text = msgspec.json.Encoder(order="deterministic").encode({**patch, "metadata": meta}).decode()
    return _MARKUP.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def _without_managers(body: Json) -> Json:
    meta = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return {**body, "metadata": meta}


def described(patch: Json, kind: Kind) -> str:
    """The object as messages call it."""
    found = patch.get("metadata")
    metadata = found if isinstance(found, dict) else {}
    texts = (metadata.get("namespace"), metadata.get("name"))
    namespace, name = (one if isinstance(one, str) else "" for one in texts)
    return f"{namespace}/{name}; {kind.group}/{kind.version}, Kind={kind.kind}"


def internal(message: str) -> errors.StatusError:
    """500, as the server answers where it did not think of a better code."""
    return errors.StatusError(errors.failure(500, "", message))
