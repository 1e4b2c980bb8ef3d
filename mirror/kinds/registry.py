"""All kinds in code: the table. A new one is one line here; most kinds are data (``declared``), and stand beside these.

Managers get it by their wiring; commands, and ``declared.choosing``, look at ``BUILT_IN`` when they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mirror.kinds.base import Kind
from mirror.kinds.batch_job.kind import BatchJob

JOB: Kind = BatchJob()


class UnknownKind(ValueError):
    """The table has no kind of this name; the text lists those that it has."""


class AmbiguousKind(UnknownKind):
    """Several kinds have this short name; the text lists them."""


@dataclass(frozen=True)
class Kinds:
    """The kinds that one manager mirrors, by the names that keys have, in the order of the table."""

    by_name: Mapping[str, Kind]

    @staticmethod
    def of(*kinds: Kind) -> Kinds:
        """These kinds.

        Raises:
            ValueError: two have one name.
        """
        by_name = {kind.name: kind for kind in kinds}
        if len(by_name) != len(kinds):
            raise ValueError("two kinds have one name")
        return Kinds(MappingProxyType(by_name))

    def __getitem__(self, name: str) -> Kind:
        return self.by_name[name]

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.by_name.values())

    @property
    def default(self) -> Kind:
        """The one that is meant where none is named: the first."""
        return next(iter(self))

    def path_name(self, kind: Kind) -> str:
        """What names its resource in addresses: ``jobs``, with its group where an earlier kind has this plural."""
        plural = kind.resource.plural
        is_first = next(one for one in self if one.resource.plural == plural) is kind
        return plural if is_first else resource_name(kind)

    def of_type(self, api_version: object, kind: object) -> Kind | None:
        """The kind of an object that says these of itself; None where it is none of them."""
        wanted = (api_version, kind)
        return next((one for one in self if wanted == (one.resource.api_version, one.resource.kind)), None)

    def by_path_name(self, text: str) -> Kind:
        """The kind whose resource an address names as ``jobs`` or ``jobs.batch``.

        Raises:
            UnknownKind: it names none of them.
        """
        return self._first(lambda kind: text in (kind.resource.plural, resource_name(kind)), text)

    def named(self, text: str) -> Kind:
        """The kind that somebody means, as kubectl reads it.

        That is its name, plural, singular or a short name, in any case, and perhaps its group, or version and group.
        Of two with one plural the first is meant.

        Raises:
            AmbiguousKind: several have this short name.
            UnknownKind: it is none of them.
        """
        word, _, rest = text.lower().partition(".")
        fitting = [one for one in self if rest in ("", one.resource.group, _group_version(one))]
        if not any(word in (one.resource.plural, one.name.lower()) for one in fitting):
            short = [one for one in fitting if word in one.short_names]
            if len(short) > 1:
                meant = ", ".join(map(resource_name, short))
                raise AmbiguousKind(f"{text!r} is a short name of {meant}; write one of these")
            return self._first(lambda kind: kind in short, text)
        return self._first(lambda kind: kind in fitting and word in (kind.resource.plural, kind.name.lower()), text)

    def _first(self, is_meant: Callable[[Kind], bool], text: str) -> Kind:
        found = next(filter(is_meant, self), None)
        if found is None:
            raise UnknownKind(f"unknown kind {text!r}; known: {', '.join(map(resource_name, self))}")
        return found


def _group_version(kind: Kind) -> str:
    return f"{kind.resource.version}.{kind.resource.group}"


def resource_name(kind: Kind) -> str:
    """A kind's resource as in a Role or a message: ``jobs.batch``."""
    resource = kind.resource
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def object_name(kind: Kind, name: str) -> str:
    """An object as kubectl's ``-o name`` has it: ``job.batch/train``."""
    group = f".{kind.resource.group}" if kind.resource.group else ""
    return f"{kind.name.lower()}{group}/{name}"


BUILT_IN = Kinds.of(JOB)
