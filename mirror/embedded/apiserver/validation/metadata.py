"""What the API refuses in the metadata of an object of any kind, on create and on update (C1, E3, U11), and in the
labels and selectors that objects have elsewhere, too.

Objects are canonical and prepared: the server's own fields are set. Not here: the rule that names are segments of a
path (an update cannot change them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mirror.batch.label_selectors import Requirement
from mirror.batch.quoting import json_text, json_texts, quoted
from mirror.batch.syntax import (
    LONGEST_ANNOTATIONS,
    label_problems,
    label_value_problems,
    qualified_name_problems,
    size,
    subdomain_problems,
)
from mirror.batch.violations import (
    IMMUTABLE,
    Violation,
    forbidden,
    invalid,
    invalid_text,
    invalid_texts,
    not_negative,
    required,
    too_long,
)
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.printing import text, time_text

_LONGEST_MANAGER, _LONGEST_SUBRESOURCE = 128, 256
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_STANDARD_FINALIZERS = ("kubernetes", _ORPHAN, _FOREGROUND)
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_PLAIN = ("name", "namespace")
_MOST_CONTROLLERS_TOLD = 10


def check_meta(
    meta: Json,
    *,
    name_problems: Callable[[str], Iterable[str]] = subdomain_problems,
    is_namespaced: bool = True,
    is_core: bool = True,
) -> Iterator[Violation]:
    """Every rule of a new object's metadata, in the server's order.

    ``name_problems`` tells what is wrong with a name. Kinds of core, batch and their like (``is_core``) also have the
    rule that finalizers without a domain are Kubernetes' own.
    """
    prefix, name = meta.get("generateName", ""), meta.get("name", "")
    if prefix:
        yield from invalid_texts("metadata.generateName", prefix, name_problems(masked(prefix)))
    if name:
        for problem in name_problems(name):
            yield invalid_text("metadata.name", name, problem)
    else:
        yield required("metadata.name", "name or generateName is required")
    yield from check_common(meta, is_namespaced=is_namespaced)
    if is_core and "finalizers" in meta:
        yield from check_finalizer_names(meta)


def check_common(meta: Json, *, is_namespaced: bool = True) -> Iterator[Violation]:
    """The rules of every write but those about the name."""
    namespace = meta.get("namespace", "")
    if not is_namespaced:
        if namespace:
            yield forbidden("metadata.namespace", "not allowed on this type")
    elif namespace:
        for problem in label_problems(namespace):
            yield invalid_text("metadata.namespace", namespace, problem)
    else:
        yield required("metadata.namespace")
    yield from not_negative("metadata.generation", meta.get("generation"))
    yield from check_labels("metadata.labels", meta.get("labels"))
    yield from check_annotations("metadata.annotations", meta.get("annotations"))
    yield from _check_owners(meta.get("ownerReferences", ()))
    yield from _check_finalizers(meta.get("finalizers", ()))
    yield from _check_managed_fields(meta.get("managedFields", ()))


def check_finalizer_names(meta: Json) -> Iterator[Violation]:
    """The rule of core that comes after the others: names without a domain are Kubernetes' own."""
    for position, name in enumerate(meta.get("finalizers", ())):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_text(f"metadata.finalizers[{position}]", name, detail)


def check_any_update(new: Json, old: Json, *, is_namespaced: bool = True) -> Iterator[Violation]:
    """What the server looks at in the metadata of every update, before the rules of the kind."""
    yield from check_common(new, is_namespaced=is_namespaced)
    yield from check_kept(new, old)


def check_meta_update(new: Json, old: Json, *, is_core: bool = True) -> Iterator[Violation]:
    """What an update may not change, of two whole objects."""
    yield from check_kept(new["metadata"], old["metadata"])
    if is_core:
        yield from check_finalizer_names(new["metadata"])


def check_kept(new: Json, old: Json) -> Iterator[Violation]:
    """The same of their metadata alone, without the rules of core."""
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers", ())) - set(old.get("finalizers", ())))
        if added:
            listed = ", ".join(map(quoted, added))
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
            yield forbidden("metadata.finalizers", f"{detail}[]string{{{listed}}}")
    if not new.get("resourceVersion"):
        yield invalid_text("metadata.resourceVersion", "", "must be specified for an update")
    if new.get("generation", 0) < old.get("generation", 0):
        yield invalid("metadata.generation", new.get("generation", 0), "must not be decremented")
    for name in _FIXED:
        if new.get(name) != old.get(name):
            yield invalid(f"metadata.{name}", _printed(name, new.get(name)), IMMUTABLE)
    yield from check_labels("metadata.labels", new.get("labels"))
    yield from check_annotations("metadata.annotations", new.get("annotations"))
    yield from _check_owners(new.get("ownerReferences", ()))
    yield from _check_managed_fields(new.get("managedFields", ()))


def check_annotations(field: str, annotations: Mapping[str, str] | None) -> Iterator[Violation]:
    """Keys may be in any case here; keys and values together are bounded."""
    for key in sorted(annotations or ()):
        yield from invalid_texts(field, key, qualified_name_problems(key.lower()))
    if sum(size(key) + size(value) for key, value in (annotations or {}).items()) > LONGEST_ANNOTATIONS:
        yield too_long(field, LONGEST_ANNOTATIONS)


def masked(prefix: str) -> str:
    """A generateName as its rules see it: the dash at its end, and what is before it, is still to be followed."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _printed(name: str, value: object) -> object:
    if name in _PLAIN:
        return quoted(str(value or ""))
    if isinstance(value, str):
        return time_text(value) if name.endswith("Timestamp") else json_text(value)
    return '""' if name == "uid" else "null" if value is None else value


def _check_owners(owners: Sequence[Json]) -> Iterator[Violation]:
    field, controller, told = "metadata.ownerReferences", "", 0
    for owner in owners:
        yield from _check_owner(field, owner)
        if not owner.get("controller"):
            continue
        current = f"{owner['kind']}/{owner['name']}"
        # Each cause shows all owners: a server says it for every one; ten times is enough to fill no memory.
        if controller and told < _MOST_CONTROLLERS_TOLD:
            told += 1
            detail = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {current}'
            )
            yield invalid(field, text(owners, "[OwnerReference]"), detail)
        controller = controller or current


def _check_owner(field: str, owner: Json) -> Iterator[Violation]:
    group, _, version = owner["apiVersion"].rpartition("/")
    # With two slashes a server sees neither group nor version.
    if not version or "/" in group:
        yield invalid_text(f"{field}.apiVersion", owner["apiVersion"], "version must not be empty")
    if not owner["kind"]:
        yield invalid_text(f"{field}.kind", "", "must not be empty")
    if not owner["name"]:
        yield invalid_text(f"{field}.name", "", "must not be empty")
    if not owner["uid"]:
        yield invalid(f"{field}.uid", '""', "must not be empty")
    if (owner["apiVersion"], owner["kind"]) == ("v1", "Event"):
        detail = "/v1, Kind=Event is disallowed from being an owner"
        yield invalid(field, text(owner, "OwnerReference"), detail)


def _check_finalizers(finalizers: Sequence[str]) -> Iterator[Violation]:
    field = "metadata.finalizers"
    for name in finalizers:
        yield from invalid_texts(field, name, qualified_name_problems(name))
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        yield invalid(field, json_texts(finalizers), f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set")


def _check_managed_fields(entries: Sequence[Json]) -> Iterator[Violation]:
    for position, entry in enumerate(entries):
        field = f"metadata.managedFields[{position}]"
        if entry.get("operation") not in ("Apply", "Update"):
            yield invalid(f"{field}.operation", json_text(entry.get("operation", "")), "must be `Apply` or `Update`")
        kind = entry.get("fieldsType", "")
        if kind and kind != "FieldsV1":
            yield invalid_text(f"{field}.fieldsType", kind, "must be `FieldsV1`")
        if size(entry.get("manager", "")) > _LONGEST_MANAGER:
            yield too_long(f"{field}.manager", _LONGEST_MANAGER)
        if size(entry.get("subresource", "")) > _LONGEST_SUBRESOURCE:
            yield too_long(f"{field}.subresource", _LONGEST_SUBRESOURCE)


# Labels and selectors, wherever an object has some.

_SETS, _PRESENCES = ("In", "NotIn"), ("Exists", "DoesNotExist")


def check_labels(field: str, labels: Mapping[str, str] | None) -> Iterator[Violation]:
    """Keys and values of labels. A server takes them in any order; ours is that of the keys."""
    for key, value in sorted((labels or {}).items()):
        for problem in qualified_name_problems(key):
            yield invalid_text(field, key, problem)
        for problem in label_value_problems(value):
            yield invalid_text(field, value, problem)


def check_selector(field: str, selector: Json | None, *, allow_bad_values: bool = False) -> Iterator[Violation]:
    """Whether a selector is well formed; one that is not there is."""
    if selector is None:
        return
    yield from check_labels(f"{field}.matchLabels", selector.get("matchLabels"))
    for position, requirement in enumerate(selector.get("matchExpressions", ())):
        yield from _check_requirement(
            f"{field}.matchExpressions[{position}]", requirement, allow_bad_values=allow_bad_values
        )


def has_bad_values(selector: Json | None) -> bool:
    """C9: a stored selector with such values may keep them."""
    expressions = (selector or {}).get("matchExpressions", ())
    return any(label_value_problems(value) for one in expressions for value in one.get("values", ()))


def is_well_formed(selector: Json | None) -> bool:
    """Whether ``check_selector`` finds nothing."""
    return next(check_selector("", selector), None) is None


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Whether the selector of an object, if it is well formed, takes these labels. No selector takes nothing."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        Requirement(one["key"], one["operator"], frozenset(one.get("values", ()))).matches(labels)
        for one in selector.get("matchExpressions", ())
    )


def _check_requirement(field: str, requirement: Json, *, allow_bad_values: bool) -> Iterator[Violation]:
    operator, values = requirement["operator"], requirement.get("values", ())
    if operator in _SETS:
        if not values:
            yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _PRESENCES:
        if values:
            yield forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(f"{field}.operator", json_text(operator), "not a valid selector operator")
    key = requirement["key"]
    yield from invalid_texts(f"{field}.key", key, qualified_name_problems(key))
    for position, value in () if allow_bad_values else enumerate(values):
        yield from invalid_texts(f"{field}.values[{position}]", value, label_value_problems(value))
