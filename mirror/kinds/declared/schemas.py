"""Whether the paths of an entry are fields of its kind, by the schema that a cluster publishes. Pure.

Used where a kind is watched (``controllers.kind_schemas``, ``worker_schemas``) and by ``mirror kinds --check``.

What the settings say is looked at whole. Of what the table says, only what nothing works without: its other paths are
those of several releases, and one that a release lacks does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from mirror.kinds.declared.choosing import built_in
from mirror.model.field_paths import FieldPath
from mirror.settings.kind_rules import alternatives, clause_parts, need_parts
from mirror.settings.kinds import KindEntry
from mirror.settings.load import Problem

_OF_STATUS = re.compile(r"\{(status\.[A-Za-z.]+)\}")
"""A variable of a label that is read from a status."""


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
    essential = ((key, text) for key, texts in _essential(entry) for text in texts)
    optional = ((key, text) for key, text in _optional(entry) if text not in known)
    lacking = ((key, schema.missing(FieldPath.of_text(text))) for key, text in (*essential, *optional))
    return [_problem(entry, path, key, lacks) for key, lacks in lacking if lacks]


def unusable(entry: KindEntry, schema: Schema, *, path: str = "") -> list[Problem]:
    """What of an entry leads nowhere, though nothing of the kind can be mirrored without it.

    Args:
        entry: whole, with what the table says.
        schema: of one cluster.
        path: where the entry is in the settings, such as ``kinds[0]``.
    """
    found = []
    for key, texts in _essential(entry):
        lacking = [schema.missing(FieldPath.of_text(text)) for text in texts]
        if all(lacking):
            found.append(_problem(entry, path, key, lacking[0]))
    return found


def lacking_on_worker(entry: KindEntry, schema: Schema) -> tuple[str, ...]:
    """The fields that a worker's definition lacks, though without them no mirror can be suspended, or seen to end.

    Who runs an object, and our record, are fields of sources: no mirror has them, and the worker's definition need not.
    """
    found = []
    for _, texts in _essential_of_mirrors(entry):
        lacking = [schema.missing(FieldPath.of_text(text)) for text in texts]
        if all(lacking):
            found.append(lacking[0])
    return tuple(dict.fromkeys(found))


def _problem(entry: KindEntry, path: str, key: str, lacks: str) -> Problem:
    instead = "; with record: annotation none is needed" if key == "record" else ""
    return Problem(f"{path}.{key}" if path else key, f"{lacks} is no field of {entry.kind}{instead}")


def _essential(entry: KindEntry) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Who runs it, where our record is, how it is held, how it ends: paths of which one has to be there."""
    yield "managedBy.path", (entry.managed_by.path,)
    if entry.record == "condition":
        yield "record", ("status.conditions",)
    yield from _essential_of_mirrors(entry)


def _essential_of_mirrors(entry: KindEntry) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Those of them that mirrors have, too."""
    if entry.suspend.path:
        yield "suspend.path", (entry.suspend.path,)
    for name in ("succeeded", "failed", "withdrawable"):
        for index, clause in enumerate(getattr(entry.done, name)):
            yield f"done.{name}[{index}]", tuple(map(_field_of, alternatives(clause)))


def _field_of(part: str) -> str:
    """What of a status a part of a clause is about."""
    what, field, _, _ = clause_parts(part)
    return "status.conditions" if what else f"status.{field}"


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
        "needs": tuple(need_parts(one)[-1] for one in entry.needs),
    }
    for key, texts in listed.items():
        for index, text in enumerate(texts):
            if not text.startswith("metadata."):
                yield f"{key}[{index}]", text
    for index, clause in enumerate(entry.started):
        for part in alternatives(clause):
            yield f"started[{index}]", _field_of(part)
    if entry.time_to_live:
        yield "timeToLive", entry.time_to_live
    yield from _of_status(entry)
    if entry.autoscaling.path:
        yield "autoscaling.path", entry.autoscaling.path
    for name, labels in (("pods", entry.pods), ("morePods", entry.more_pods)):
        for label, text in labels.items():
            for variable in _OF_STATUS.findall(text):
                yield f"{name}.{label}", variable
    for name, patch in (("suspended", entry.suspended), ("lost", entry.lost)):
        for text in patch.set:
            yield f"{name}.set.{text}", f"status.{text}"
        for index, text in enumerate(patch.zero):
            yield f"{name}.zero[{index}]", f"status.{text}"


def _of_status(entry: KindEntry) -> Iterator[tuple[str, str]]:
    """What is read of a status, and how it is copied."""
    listed = {
        "status.drop": entry.status.drop,
        "status.complete": entry.status.complete,
        "counts.active": entry.counts.active,
        "counts.succeeded": entry.counts.succeeded,
        "counts.failed": entry.counts.failed,
        "counts.ready": entry.counts.ready,
    }
    for text in entry.status.defaults:
        yield f"status.defaults.{text}", f"status.{text}"
    for key, texts in listed.items():
        for index, text in enumerate(texts):
            yield f"{key}[{index}]", f"status.{text}"
    for index, text in enumerate(entry.counts.desired):
        yield f"counts.desired[{index}]", text
