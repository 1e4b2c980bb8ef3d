"""Whether the paths of an entry are fields of its kind, by the schema that a cluster publishes. Pure.

What the settings say is looked at whole. Of what the table says, only what nothing works without: its other paths are
those of several releases, and one that a release lacks does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from mirror.kinds.declared.choosing import built_in
from mirror.model.field_paths import FieldPath
from mirror.settings.kind_rules import alternatives, clause_parts
from mirror.settings.kinds import KindEntry
from mirror.settings.load import Problem


class Schema(Protocol):
    """The schema of a kind (``kube.openapi``)."""

    def missing(self, path: FieldPath) -> str:
        """The first part of a path that no object of the kind has; empty if some may have all of it."""
        ...


def unknown_fields(entry: KindEntry, schema: Schema, *, path: str = "") -> list[Problem]:
    """The paths of an entry that lead nowhere, by the path of their key.

    Args:
        entry: whole, with what the table says.
        schema: of one cluster.
        path: where the entry is in the settings, such as ``kinds[0]``.
    """
    base = built_in().get(entry.kind)
    known = {text for _, text in _optional(base)} if base is not None else set[str]()
    found = []
    for key, text in (*_essential(entry), *((key, text) for key, text in _optional(entry) if text not in known)):
        if lacks := schema.missing(FieldPath.of_text(text)):
            found.append(Problem(f"{path}.{key}" if path else key, f"{lacks} is no field of {entry.kind}"))
    return found


def _essential(entry: KindEntry) -> Iterator[tuple[str, str]]:
    """Who runs it, where our record is, how it is held, how it ends."""
    yield "managedBy.path", entry.managed_by.path
    if entry.record == "condition":
        yield "record", "status.conditions"
    if entry.suspend.path:
        yield "suspend.path", entry.suspend.path
    for name, clauses in (("succeeded", entry.done.succeeded), ("failed", entry.done.failed)):
        for index, clause in enumerate(clauses):
            for part in alternatives(clause):
                what, field, _, _ = clause_parts(part)
                yield f"done.{name}[{index}]", "status.conditions" if what else f"status.{field}"


def _optional(entry: KindEntry) -> Iterator[tuple[str, str]]:
    listed = {
        "strip": entry.strip,
        "carry.always": entry.carry.always,
        "carry.suspended": entry.carry.suspended,
        "theirs": entry.theirs,
        "replace": tuple(one.path for one in entry.replace),
        "templates": entry.templates,
        "namespaces": entry.namespaces,
        "autoscaling.theirs": entry.autoscaling.theirs,
        "requires": tuple(one.path for one in entry.requires),
        "needs": tuple(one.partition(" ")[2] for one in entry.needs),
    }
    for key, texts in listed.items():
        for index, text in enumerate(texts):
            if not text.startswith("metadata."):
                yield f"{key}[{index}]", text
    yield from _counted(entry)
    if entry.time_to_live:
        yield "timeToLive", entry.time_to_live
    for name, patch in (("suspended", entry.suspended), ("lost", entry.lost)):
        for text in patch.set:
            yield f"{name}.set.{text}", f"status.{text}"
        for index, text in enumerate(patch.zero):
            yield f"{name}.zero[{index}]", f"status.{text}"


def _counted(entry: KindEntry) -> Iterator[tuple[str, str]]:
    for index, text in enumerate(entry.counts.ready):
        yield f"counts.ready[{index}]", f"status.{text}"
    for index, text in enumerate(entry.counts.desired):
        yield f"counts.desired[{index}]", text
