"""An entry of ``settings.kinds`` made ready for use: its paths and clauses are read once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from mirror.batch import views
from mirror.kube.resources import Resource
from mirror.model.field_paths import FieldPath, at
from mirror.settings.kind_rules import clause_parts
from mirror.settings.kinds import KindEntry

Json = Any


path_of = lru_cache(maxsize=4096)(FieldPath.of_text)
"""A path that was checked, read once."""


class Clause(msgspec.Struct, frozen=True):
    """One thing that a status says."""

    what: str
    """``condition`` or ``reason`` (of a condition), or nothing: a field."""
    name: str
    is_not: bool
    values: tuple[str, ...]
    field: FieldPath | None = None

    @staticmethod
    def of_text(text: str) -> Clause:
        what, name, is_not, values = clause_parts(text)
        return Clause(what, name, is_not, values, None if what else path_of(name))

    def holds(self, status: Mapping[str, Json]) -> bool:
        """Whether a status says so."""
        if self.field is not None:
            found = views.text(self.field.first(status))
        else:
            found = views.text(condition_of(status, self.name).get("reason" if self.what == "reason" else "status"))
        return (found in self.values) is not self.is_not


def resource_of(text: str, kind: str) -> Resource:
    """``plural.version.group`` of a kind, read."""
    plural, version, group = text.split(".", 2)
    return Resource(group, version, plural, kind)


def condition_of(status: Mapping[str, Json], type_name: str) -> Mapping[str, Json]:
    """The first condition of a type; empty where there is none."""
    for one in views.items(status.get("conditions")):
        found = views.mapping(one)
        if found.get("type") == type_name:
            return found
    return {}


class Form(msgspec.Struct, frozen=True, dict=True):
    """What is known of a kind; build it with ``of``."""

    entry: KindEntry
    resource: Resource
    managed_by: FieldPath
    suspend: FieldPath | None
    succeeded: tuple[Clause, ...]
    failed: tuple[Clause, ...]
    strip: tuple[FieldPath, ...]
    always: tuple[FieldPath, ...]
    suspended: tuple[FieldPath, ...]
    theirs: tuple[FieldPath, ...]
    templates: tuple[FieldPath, ...]
    needs: tuple[tuple[str, FieldPath], ...]

    @staticmethod
    def of(entry: KindEntry) -> Form:
        """From an entry that was checked."""
        managed_by = path_of(entry.managed_by.path)
        needs = (one.partition(" ") for one in entry.needs)
        return Form(
            entry=entry,
            resource=resource_of(entry.resource, entry.kind),
            managed_by=managed_by,
            suspend=path_of(entry.suspend.path) if entry.suspend.path else None,
            succeeded=tuple(map(Clause.of_text, entry.done.succeeded)),
            failed=tuple(map(Clause.of_text, entry.done.failed)),
            strip=(managed_by, *_paths(entry.strip)),
            always=_paths(entry.carry.always),
            suspended=_paths(entry.carry.suspended),
            theirs=_paths(entry.theirs),
            templates=_paths(entry.templates),
            needs=tuple((kind, path_of(path)) for kind, _, path in needs),
        )

    @cached_property
    def pod_owners(self) -> tuple[Resource, ...]:
        """What may stand between a mirror and its pods."""
        named = (one.partition(" ") for one in self.entry.pod_owners)
        return tuple(resource_of(resource, kind) for kind, _, resource in named)

    @cached_property
    def counts(self) -> tuple[tuple[FieldPath, ...], ...]:
        """Where its status counts what is active, has succeeded and has failed."""
        counts = self.entry.counts
        return tuple(map(_paths, (counts.active, counts.succeeded, counts.failed)))

    def counted(self, status: Mapping[str, Json]) -> tuple[int, int, int]:
        """How much of it is active, has succeeded and has failed, as far as its status tells."""
        sums = (
            sum(views.number(at(status, place)) for path in paths for place in path.places(status))
            for paths in self.counts
        )
        active, succeeded, failed = sums
        return active, succeeded, failed

    @cached_property
    def final_types(self) -> tuple[str, ...]:
        """The conditions that tell of its end."""
        clauses = (*self.failed, *self.succeeded)
        return tuple(dict.fromkeys(one.name for one in clauses if one.what == "condition"))

    def managed_by_of(self, spec: Mapping[str, Json]) -> str | None:
        """Who runs it; None where nobody is named."""
        found = self.managed_by.first({"spec": spec})
        return found if isinstance(found, str) else None

    def is_held(self, spec: Mapping[str, Json]) -> bool:
        """Whether it is suspended."""
        if self.suspend is None:
            return False
        found, held = self.suspend.first({"spec": spec}), self.entry.suspend.held
        return type(found) is type(held) and found == held

    def end_of(self, status: Mapping[str, Json]) -> str:
        """``Failed`` or ``Complete``; empty while it goes on. A failure wins where both are claimed."""
        for name, clauses in (("Failed", self.failed), ("Complete", self.succeeded)):
            if clauses and all(one.holds(status) for one in clauses):
                return name
        return ""

    def end_condition(self, status: Mapping[str, Json]) -> Mapping[str, Json]:
        """The condition that tells of its end; empty where it has none."""
        clauses = {"Failed": self.failed, "Complete": self.succeeded}.get(self.end_of(status), ())
        named = (condition_of(status, one.name) for one in clauses if one.what and not one.is_not)
        return next(filter(None, named), {})

    def needed(self, spec: Mapping[str, Json]) -> tuple[tuple[str, str, str], ...]:
        """Kind, name and path of what a spec names beside its pod templates."""
        body: Json = {"spec": spec}
        named = ((kind, path, at(body, place)) for kind, path in self.needs for place in path.places(body))
        found = ((kind, name, path.text) for kind, path, name in named if isinstance(name, str) and name)
        return tuple(dict.fromkeys(found))


def _paths(texts: tuple[str, ...]) -> tuple[FieldPath, ...]:
    return tuple(map(path_of, texts))
