"""Which names a definition gets, and whether its kind is served. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.crds.kind import has_condition, set_condition

_NAMES = (
    ("plural", "PluralConflict", "resources"),
    ("singular", "SingularConflict", "resources"),
    ("kind", "KindConflict", "kinds"),
    ("listKind", "ListKindConflict", "kinds"),
)


def settled(definition: Json, others: Iterable[Json], now: str) -> Json:
    """The status that a definition should have, beside others of its group that may have its names."""
    status = {**definition.get("status", {})}
    wanted, accepted = definition["spec"]["names"], dict(status.get("acceptedNames") or {})
    taken: dict[str, set[str]] = {"resources": set(), "kinds": set()}
    for other in others:
        names = other.get("status", {}).get("acceptedNames") or {}
        taken["resources"] |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
        taken["kinds"] |= {names.get("kind", ""), names.get("listKind", "")}
    reason = message = ""
    for name, why, among in _NAMES[:2]:
        reason, message = _take(name, why, wanted, accepted, taken[among]) or (reason, message)
    clashing = [one for one in wanted.get("shortNames") or () if one in taken["resources"]]
    if clashing:
        reason, message = "ShortNamesConflict", _in_use(clashing)
    elif wanted.get("shortNames"):
        accepted["shortNames"] = wanted["shortNames"]
    else:
        accepted.pop("shortNames", None)
    for name, why, among in _NAMES[2:]:
        reason, message = _take(name, why, wanted, accepted, taken[among]) or (reason, message)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    status["acceptedNames"] = {"plural": accepted.get("plural", ""), "kind": accepted.get("kind", "")} | accepted
    _judge(status, reason, message, definition, now)
    return status


def _take(name: str, why: str, wanted: Json, accepted: Json, taken: set[str]) -> tuple[str, str] | None:
    value = wanted.get(name, "")
    if value == accepted.get(name) or value not in taken:
        accepted[name] = value
        return None
    return why, _in_use([value])


def _in_use(names: list[str]) -> str:
    told = [f'"{name}" is already in use' for name in names]
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"


def _judge(status: Json, reason: str, message: str, definition: Json, now: str) -> None:
    if reason:
        set_condition(status, "NamesAccepted", "False", reason, message, now)
        if not has_condition(definition, "Established"):
            set_condition(status, "Established", "False", "NotAccepted", "not all names are accepted", now)
        return
    set_condition(status, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
    if not has_condition(definition, "Established"):
        told = "the initial names have been accepted"
        set_condition(status, "Established", "True", "InitialNamesAccepted", told, now)
