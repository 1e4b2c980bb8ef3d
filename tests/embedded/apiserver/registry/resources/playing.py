"""Objects taken through the hooks of their kind as the registry does it, without a server."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mirror.batch.feature_gates import DEFAULT_GATES, FeatureGates
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.build import builtin

Json = dict[str, Any]

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NOW_TEXT, UID = "2026-11-21T12:00:00Z", "0d5b3f6e-0000-4000-8000-000000000001"
KINDS = {(kind.group, kind.kind): kind for kind in builtin()}
CONTAINERS = {"containers": [{"name": "main", "image": "busybox:1.36"}]}


@dataclass(frozen=True)
class Played:
    """What came of a write."""

    body: Json
    causes: list[str]
    """``field: message``."""
    warnings: list[str]


def kind_of(name: str, group: str = "") -> Kind:
    return KINDS[group, name]


def context(gates: FeatureGates = DEFAULT_GATES) -> Context:
    return Context(now=NOW_TEXT, uid=UID, gates=gates)


def create(name: str, body: Json, *, group: str = "", gates: FeatureGates = DEFAULT_GATES) -> Played:
    """A new object called ``a``; its body is as it will be stored."""
    kind = kind_of(name, group)
    strategy, at = kind.strategy, context(gates)
    meta = {"name": "a", **({"namespace": "default"} if kind.is_namespaced else {}), **body.get("metadata", {})}
    made = strategy.decode(deepcopy({**body, "metadata": meta}))
    strategy.default(made, at)
    made["metadata"] |= {"uid": UID, "creationTimestamp": NOW_TEXT}
    made |= {"apiVersion": kind.api_version, "kind": kind.kind}
    made = strategy.prepare_create(made, at)
    found = strategy.check_create(made, at)
    warnings = list(strategy.warnings(made, None, at))
    return Played(strategy.served(made), [f"{one.field}: {one.message}" for one in found], warnings)


def stored(name: str, body: Json | None = None, *, group: str = "", **fields: Any) -> Json:
    """An object that is there, with further fields as somebody wrote them."""
    made = create(name, body or {}, group=group)
    assert made.causes == []
    made.body["metadata"]["resourceVersion"] = "5"
    return made.body | fields


def update(name: str, old: Json, change: Json, *, group: str = "", subresource: str = "") -> Played:
    """A change of an object, given as a merge patch."""
    strategy, at = kind_of(name, group).strategy, context()
    new = strategy.decode(merged(old, change))
    strategy.default(new, at)
    if subresource:
        way = strategy.subresources[subresource]
        new = way.prepare(new, deepcopy(old), at)
        found = way.check(new, old, at)
        warnings: list[str] = []
    else:
        new = strategy.prepare_update(new, deepcopy(old), at)
        found = strategy.check_update(new, old, at)
        warnings = list(strategy.warnings(new, old, at))
    return Played(strategy.served(new), [f"{one.field}: {one.message}" for one in found], warnings)


def merged(old: Any, change: Any) -> Any:
    """JSON merge patch."""
    if not isinstance(change, dict):
        return deepcopy(change)
    made = dict(deepcopy(old)) if isinstance(old, dict) else {}
    for name, value in change.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), value)
    return made


def cells(body: Json, name: str, *, group: str = "", now: datetime = NOW) -> dict[str, object]:
    """The row of an object, by column."""
    strategy = kind_of(name, group).strategy
    row = strategy.cells(body, now)
    assert len(row) == len(strategy.columns)
    return {column.name: cell for column, cell in zip(strategy.columns, row, strict=True)}
