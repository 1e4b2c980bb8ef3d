"""What every write has in common: fields that are the server's own, rules of metadata, the form in storage, storing.

``creation``, ``updates`` and ``deletion`` use it; so do actions on subresources (eviction, binding, scale, …).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from random import Random
from typing import Any, TypeAlias

from mirror.batch import times
from mirror.batch.syntax import segment_problems
from mirror.batch.violations import Violation, invalid_text, invalid_texts, required
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, bad_request, failure, invalid
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS
from mirror.embedded.apiserver.apimachinery.strategy import Strategy
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.records import Record
from mirror.embedded.apiserver.validation import metadata

SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX, _SUFFIX = 58, 5
_DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)


def generated_name(random: Random, prefix: str) -> str:
    """The prefix, cut if need be, and five random letters."""
    suffix = "".join(random.choices(_SUFFIX_LETTERS, k=_SUFFIX))
    return prefix.encode()[:_LONGEST_PREFIX].decode(errors="ignore") + suffix


def match_namespace(scope: RequestScope, meta: Json) -> None:
    """Give it the namespace of the path. Raises: StatusError 400 if it names another."""
    if not scope.kind.is_namespaced:
        meta.pop("namespace", None)
        return
    found = meta.get("namespace") or scope.namespace
    if found != scope.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    meta["namespace"] = found


def match_name(scope: RequestScope, meta: Json) -> None:
    """Raises: StatusError 400 unless it has the name of the path."""
    name = meta.get("name", "")
    if not name:
        raise bad_request(
            f"the name of the object ({scope.name} based on URL) was undeterminable: name must be provided"
        )
    if name != scope.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({scope.name})")


def drop_repeated_owners(meta: Json, warnings: list[str], *, is_after_admission: bool) -> None:
    """Owner references are a set."""
    owners = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: dict[bytes, Json] = {}
    repeated: list[str] = []
    for one in owners:
        key = objects.encode_sorted(one)
        if key in kept:
            repeated.append(str(one.get("uid", "")))
        else:
            kept[key] = one
    if repeated:
        meta["ownerReferences"] = list(kept.values())
        when = " after mutating admission happens" if is_after_admission else ""
        warnings.append(_DUPLICATE_OWNERS.format(when, ", ".join(repeated)))


def keep_system_fields(new: Json, old: Json) -> None:
    """What no update can change. What it says beside that is for the rules, which find that it differs."""
    new.pop("generation", None)
    for name in ("generation", "creationTimestamp", "deletionTimestamp"):
        if name in old:
            new[name] = old[name]
    for name in ("uid", "namespace", "deletionGracePeriodSeconds"):
        if name in old and not new.get(name):
            new[name] = old[name]
    new.pop("selfLink", None)


def check_created(scope: RequestScope, body: Json, found: Sequence[Violation]) -> None:
    """Raises: StatusError 422 for what the kind finds, else for what is wrong in the metadata of any object."""
    name = body["metadata"].get("name", "")
    if not found and not scope.kind.strategy.checks_metadata:
        found = [
            *_name_problems(name),
            *metadata.check_common(body["metadata"], is_namespaced=scope.kind.is_namespaced),
        ]
    if found:
        raise invalid(scope.kind.kind, scope.kind.refused_group, name, found)


def check_updated(scope: RequestScope, new: Json, old: Json, found: Sequence[Violation]) -> None:
    """Raises: StatusError 422 for what all kinds have in common, and for what this one finds."""
    meta = new["metadata"]
    problems = [
        *_segment_problems("metadata.generateName", meta.get("generateName", "")),
        *metadata.check_any_update(meta, old["metadata"], is_namespaced=scope.kind.is_namespaced),
        *found,
    ]
    if problems:
        raise invalid(scope.kind.kind, scope.kind.refused_group, meta.get("name", ""), problems)


def served(strategy: Strategy, body: Json) -> Json:
    """The object as it will be shown. Managed fields are as they should be already, and much to look through."""
    fields = body["metadata"].pop("managedFields", None)
    found = strategy.served(body)
    if fields:
        found["metadata"]["managedFields"] = fields
    return found


def same_but_for_times(new: Json, old: Json) -> bool:
    """Whether an update changes nothing, or nothing but the times of managed fields."""
    if new == old:
        return True
    new_meta, old_meta = new["metadata"], old["metadata"]
    for name in new.keys() | old.keys():
        if name != "metadata" and new.get(name) != old.get(name):
            return False
    for name in new_meta.keys() | old_meta.keys():
        if name != "managedFields" and new_meta.get(name) != old_meta.get(name):
            return False
    return _untimed(new_meta) == _untimed(old_meta)


def store(storage: Storage, kind: Kind, body: Json, *, replacing: Record | None) -> Record:
    """Write it. Raises: StorageConflict."""
    meta = body["metadata"]
    return storage.write(
        kind.stored_as,
        meta.get("namespace", ""),
        meta["name"],
        partial(objects.stored, kind, body),
        replacing=replacing,
        labels=meta.get("labels") or {},
        uid=meta.get("uid", ""),
    )


def remove(storage: Storage, kind: Kind, record: Record) -> Record:
    """Delete it; watchers see it as it was stored last. Raises: StorageConflict."""
    return storage.remove(kind.stored_as, record, partial(objects.at_deletion, record))


def is_version(text: str) -> bool:
    """Whether storage takes it for one, be it of the future; 0 and what is no number of 64 bits are none."""
    digits = text.lstrip("0")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 20 and int(digits) < 1 << 64


def version_on_create() -> StatusError:
    """500, as upstream has it."""
    return StatusError(failure(500, "", "resourceVersion should not be set on objects to be created"))


def _name_problems(name: str) -> list[Violation]:
    """A name must be a segment of a path."""
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    return [*invalid_texts("metadata.name", name, segment_problems(name))]


def _segment_problems(field: str, text: str) -> list[Violation]:
    """What a segment of a path, or the beginning of one, may not have in it."""
    return [invalid_text(field, text, f"may not contain '{one}'") for one in "/%" if one in text]


def _untimed(meta: Json) -> list[Json]:
    return [{name: value for name, value in one.items() if name != "time"} for one in meta.get("managedFields") or ()]


# The form in storage: times in UTC with whole seconds (or microseconds), no empty lists.

_Change: TypeAlias = Callable[[Any], Any]


def stored(body: Json, struct: str) -> Json:
    """The canonical object of this struct as every answer shows it; what it shares with the input is never changed."""
    changed: Json = _changed(body, _changes(struct))
    return changed


def micro(text: str) -> str:
    """A time with six digits of a second, in UTC.

    Raises:
        BadTime: it is not a time.
    """
    seconds, rest = divmod(times.instant(text), times.NANOSECONDS)
    return f"{times.text(seconds)[:-1]}.{rest // 1_000:06}Z"


@cache
def _changes(struct: str) -> Mapping[str, _Change]:
    """The fields of a struct in which anything may change, and how."""
    found = ((name, _change(kind)) for name, kind in STRUCTS[struct].items() if struct != "ManagedFieldsEntry")
    return {name: change for name, change in found if change is not None}


def _change(kind: str) -> _Change | None:
    base = kind.strip("*!")
    if base == "t":
        return _seconds
    if base == "m":
        return _microseconds
    if base.startswith("["):
        item = _change(base[1:-1])
        return (lambda value: [item(one) for one in value] or None if value else None) if item else _list
    if base in STRUCTS:
        changes = _changes(base)
        return (lambda value: _changed(value, changes) if value else value) if changes else None
    return None


def _changed(body: Json, changes: Mapping[str, _Change]) -> Json:
    return {name: changes[name](value) if name in changes else value for name, value in body.items()}


def _list(value: Any) -> Any:
    return value or None


def _seconds(value: Any) -> Any:
    return _time(value, times.stored)


def _microseconds(value: Any) -> Any:
    return _time(value, micro)


def _time(value: Any, form: Callable[[str], str]) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return None if times.instant(value) == _ZERO else form(value)
    except times.BadTime:
        return value


_ZERO = times.instant(times.ZERO)
