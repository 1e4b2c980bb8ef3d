"""The kinds of a manager as it tells its users: the entries of its settings, as JSON in a ConfigMap. Pure.

Users' commands read it by what everybody may read (``access.reporting``), with no permission of its own. What a command
cannot understand, since the manager is newer or the text was tampered with, is left out and named, never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from mirror.kinds import registry
from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import BadKinds, built_in, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.registry import Kinds
from mirror.kube.objects import JUNK
from mirror.model.text import clean
from mirror.settings.kinds import KindEntry, ManagedByField
from mirror.settings.load import Problem, read_section

MOST_KINDS = 64
LONGEST_NAME = 64
_UNNEEDED = ("sample",)
"""Of an entry: what only a manager needs."""


class KnownKinds(NamedTuple):
    """What was understood."""

    kinds: Kinds
    left_out: tuple[str, ...] = ()
    """Names of kinds that were not."""


def written(entries: Sequence[KindEntry]) -> str:
    """The entries as JSON; what they do not say stays unsaid."""
    return msgspec.json.encode([one.as_mapping(without=_UNNEEDED) for one in entries]).decode()


def read(text: str, base: Kinds) -> KnownKinds | None:
    """The kinds that a manager has published.

    Args:
        text: as ``written``; somebody else may have changed it.
        base: the kinds that are there anyway.

    Returns:
        None where it is no list.
    """
    try:
        listed = msgspec.json.decode(text.encode(), type=list[Any])
    except JUNK:
        return None
    left_out: list[str] = []
    found = dict(base.by_name)
    for one in listed[:MOST_KINDS]:
        entry = {KindEntry.SHORTHAND: one} if isinstance(one, str) else one
        kind = _kind_of(entry)
        if kind is not None:
            found.setdefault(kind.name, kind)
        elif not _is_in_code(entry):
            left_out.append(_name_of(entry))
    return KnownKinds(Kinds.of(*found.values()), tuple(left_out))


def guessed(base: Kinds, served: Iterable[str]) -> Kinds:
    """The kinds that a manager may have, where it does not tell: those that are built in and that a cluster serves.

    Whether it has them, an object alone tells: that it names MultiKueue does not make it ours, as in ``sources``.

    Args:
        base: the kinds that are there anyway.
        served: API groups with versions that the cluster serves: ``jobset.x-k8s.io/v1alpha2``.
    """
    there, found = frozenset(served), dict(base.by_name)
    for entry in built_in().values():
        kind = DeclaredKind(_unclaimed(entry))
        if kind.resource.api_version in there:
            found.setdefault(kind.name, kind)
    return Kinds.of(*found.values())


def every_built_in() -> Kinds:
    """All that a manager could mirror without a declaration of its own."""
    return Kinds.of(*registry.BUILT_IN, *map(DeclaredKind, built_in().values()))


def _unclaimed(entry: KindEntry) -> KindEntry:
    return msgspec.structs.replace(entry, managed_by=ManagedByField(path=entry.managed_by.path))


def _kind_of(entry: object) -> Kind | None:
    problems: list[Problem] = []
    read = read_section(KindEntry, entry, problems)
    try:
        found = () if read is None or problems else kinds_of([read])
    except BadKinds:
        return None
    return next((one for one in found if one.name not in registry.BUILT_IN.by_name), None)


def _is_in_code(entry: object) -> bool:
    return any(entry == {KindEntry.SHORTHAND: name} for name in registry.BUILT_IN.by_name)


def _name_of(entry: object) -> str:
    name = entry.get(KindEntry.SHORTHAND) if isinstance(entry, Mapping) else None
    return clean(str(name or "(without a name)"), longest=LONGEST_NAME)
