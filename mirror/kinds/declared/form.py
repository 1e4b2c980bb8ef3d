"""An entry of ``settings.kinds`` made ready for use: its paths and clauses are read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from mirror.batch import conditions as lists
from mirror.batch import views
from mirror.kinds.dependencies import Reference
from mirror.kube.resources import Resource
from mirror.model import names
from mirror.model.field_paths import FieldPath, Place, at
from mirror.model.text import clean
from mirror.settings.kind_rules import alternatives, clause_parts, need_parts
from mirror.settings.kinds import KindEntry, Requirement

Json = Any
_EMPTY: tuple[Json, ...] = (None, "", [], {})
_LONGEST_WORD = 64


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
    others: tuple[Clause, ...] = ()
    """Any of them does as well."""

    @staticmethod
    def of_text(text: str) -> Clause:
        """Read a clause, and what it has behind ``or``."""
        first, *others = (Clause._of_part(one) for one in alternatives(text))
        return msgspec.structs.replace(first, others=tuple(others))

    @staticmethod
    def _of_part(text: str) -> Clause:
        what, name, is_not, values = clause_parts(text)
        return Clause(what, name, is_not, values, None if what else path_of(name))

    @property
    def parts(self) -> tuple[Clause, ...]:
        """This one and the others."""
        return (self, *self.others)

    def holds(self, status: Mapping[str, Json]) -> bool:
        """Whether a status says so, or what another of its parts says."""
        return self._says(status) or any(one.holds(status) for one in self.others)

    def _says(self, status: Mapping[str, Json]) -> bool:
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
        if isinstance(one, dict) and one.get("type") == type_name:
            return one
    return {}


class Form(msgspec.Struct, frozen=True, dict=True):
    """What is known of a kind; build it with ``of``."""

    entry: KindEntry
    resource: Resource
    managed_by: FieldPath
    suspend: FieldPath | None
    succeeded: tuple[Clause, ...]
    failed: tuple[Clause, ...]
    withdrawable: tuple[Clause, ...]
    strip: tuple[FieldPath, ...]
    always: tuple[FieldPath, ...]
    suspended: tuple[FieldPath, ...]
    theirs: tuple[FieldPath, ...]
    templates: tuple[FieldPath, ...]
    needs: tuple[tuple[str, Resource | None, FieldPath], ...]
    autoscaled: tuple[FieldPath, ...] = ()
    namespaces: tuple[FieldPath, ...] = ()
    replaced: tuple[tuple[FieldPath, Json, Json], ...] = ()
    """Where, what, and by what."""

    @staticmethod
    def of(entry: KindEntry) -> Form:
        """From an entry that was checked."""
        managed_by = path_of(entry.managed_by.path)
        needs = map(need_parts, entry.needs)
        return Form(
            entry=entry,
            resource=resource_of(entry.resource, entry.kind),
            managed_by=managed_by,
            suspend=path_of(entry.suspend.path) if entry.suspend.path else None,
            succeeded=tuple(map(Clause.of_text, entry.done.succeeded)),
            failed=tuple(map(Clause.of_text, entry.done.failed)),
            withdrawable=tuple(map(Clause.of_text, entry.done.withdrawable)),
            strip=(managed_by, *_paths(entry.strip), *_paths(tuple(filter(None, (entry.time_to_live,))))),
            always=_paths(entry.carry.always),
            suspended=_paths(entry.carry.suspended),
            theirs=_paths(entry.theirs),
            templates=_paths(entry.templates),
            needs=tuple(
                (kind, resource_of(resource, kind) if resource else None, path_of(path))
                for kind, resource, path in needs
            ),
            autoscaled=_paths(entry.autoscaling.theirs),
            namespaces=_paths(entry.namespaces),
            replaced=tuple((path_of(one.path), one.value, one.by) for one in entry.replace),
        )

    def replacements(self, body: Json) -> Iterator[tuple[Place, Json]]:
        """Where a mirror has something else than its source, which has this body, and what."""
        for path, value, by in self.replaced:
            for place in path.places(body):
                found = at(body, place)
                if type(found) is type(value) and found == value:
                    yield place, by

    def theirs_of(self, body: Json) -> tuple[FieldPath, ...]:
        """What of one object the worker's controllers write, an autoscaler that it asks for among them (D26)."""
        asked = self.entry.autoscaling.path
        is_asked_for = bool(asked) and path_of(asked).first(body) not in (None, False)
        return (*self.theirs, *self.autoscaled) if is_asked_for else self.theirs

    def unmet(self, spec: Mapping[str, Json]) -> Requirement | None:
        """The first requirement that a spec does not meet."""
        for one in self.entry.requires:
            found = path_of(one.path).first({"spec": spec})
            is_met = found in _EMPTY if one.value is None else type(found) is type(one.value) and found == one.value
            if not is_met:
                return one
        return None

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
    def started(self) -> tuple[Clause, ...]:
        """What a status says once it has begun, beside a time, a number or a condition."""
        return tuple(map(Clause.of_text, self.entry.started))

    def has_begun(self, status: Mapping[str, Json]) -> bool:
        """Whether a status says that it has begun, in the words of its entry."""
        return bool(self.started) and all(one.holds(status) for one in self.started)

    def words_of(self, status: Mapping[str, Json]) -> str:
        """The fields that tell of its end as they are now, for people: ``phase is Queued``; empty: they say nothing."""
        parts = (part for one in (*self.succeeded, *self.failed) for part in one.parts)
        fields = {part.name: part.field for part in parts if part.field is not None}
        said = ((name, views.text(field.first(status))) for name, field in fields.items())
        return "; ".join(f"{name} is {clean(value, longest=_LONGEST_WORD)}" for name, value in said if value)

    @cached_property
    def final_types(self) -> tuple[str, ...]:
        """The conditions that tell of its end."""
        clauses = (part for one in (*self.failed, *self.succeeded) for part in one.parts)
        return tuple(dict.fromkeys(one.name for one in clauses if one.what == "condition"))

    @cached_property
    def telling(self) -> frozenset[str]:
        """The fields of a status that tell of its end, or of that it has none yet."""
        parts = [part for one in (*self.failed, *self.succeeded, *self.started) for part in one.parts]
        return frozenset("conditions" if part.what else part.name.partition(".")[0].partition("[")[0] for part in parts)

    def seconds_to_live(self, spec: Mapping[str, Json]) -> int | None:
        """After its end; None: it stays until somebody deletes it."""
        path = self.entry.time_to_live
        seconds = views.optional_number(path_of(path).first({"spec": spec})) if path else None
        return seconds if seconds is not None and seconds >= 0 else None

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

    def may_be_withdrawn(self, status: Mapping[str, Json]) -> bool:
        """Whether its controller may take back the end that a status tells of, unless it is suspended."""
        may_be = bool(self.withdrawable) and all(one.holds(status) for one in self.withdrawable)
        return may_be and bool(self.end_of(status))

    def end_condition(self, status: Mapping[str, Json]) -> Mapping[str, Json]:
        """The condition that tells of its end; empty where it has none."""
        clauses = {"Failed": self.failed, "Complete": self.succeeded}.get(self.end_of(status), ())
        parts = [part for one in clauses for part in one.parts if part.what]
        named = (condition_of(status, one.name) for one in sorted(parts, key=lambda one: one.is_not))
        return next(filter(None, named), {})

    def end_reason(self, status: Mapping[str, Json]) -> str:
        """Why it ended, in one word; empty where its status does not tell."""
        said = self.end_condition(status).get("reason") or status.get("reason")
        return views.text(said) if self.end_of(status) else ""

    def end_message(self, status: Mapping[str, Json]) -> str:
        """What its status says of a failure, in words; empty where it does not tell."""
        if self.end_of(status) != "Failed":
            return ""
        return views.text(self.end_condition(status).get("message") or status.get("message"))

    def ended_at(self, status: Mapping[str, Json]) -> str:
        """When it ended, as its status has it; empty while it goes on, or where that does not tell."""
        if not self.end_of(status):
            return ""
        said = (self.end_condition(status).get("lastTransitionTime"), *map(status.get, ("completionTime", "endTime")))
        theirs = (one for one in lists.of(status) if not views.text(one.get("type")).startswith(names.PREFIX))
        newest = max((views.text(one.get("lastTransitionTime")) for one in theirs), default="")
        return next(filter(None, map(views.text, said)), newest)

    def needed(self, spec: Mapping[str, Json]) -> tuple[Reference, ...]:
        """What a spec names beside its pod templates."""
        body: Json = {"spec": spec}
        named = (
            Reference(kind, name, path.text, resource=resource)
            for kind, resource, path in self.needs
            for place in path.places(body)
            if isinstance(name := at(body, place), str) and name
        )
        return tuple(dict.fromkeys(named))


def _paths(texts: tuple[str, ...]) -> tuple[FieldPath, ...]:
    return tuple(map(path_of, texts))
