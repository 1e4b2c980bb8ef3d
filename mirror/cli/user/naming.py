"""Which objects a command is about: ``NAME``, or ``KIND/NAME`` and ``KIND NAME`` as for kubectl.

A name alone means the table's first kind, a Job. Kinds are read as kubectl reads them: ``drill``, ``drills``, a short
name, in any case, perhaps with the group. Which there are is found out by ``learning``, once in a command's life.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import click

from mirror.batch.syntax import subdomain_problems
from mirror.kinds import registry
from mirror.kinds.base import Kind
from mirror.kinds.registry import AmbiguousKind, Kinds, UnknownKind, resource_name
from mirror.kube.objects import Object
from mirror.model.text import nearest

_known: ContextVar[Kinds | None] = ContextVar("_known", default=None)


@dataclass(frozen=True, slots=True)
class Named:
    """One object that a command names; as text ``Job train``."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name} {self.name}"

    @property
    def resource_name(self) -> str:
        """As in a Role: ``jobs.batch``."""
        return resource_name(self.kind)


def kinds() -> Kinds:
    """The kinds that a command knows: those that it has learnt of, else the table as it is when it runs."""
    return _known.get() or registry.BUILT_IN


def know(found: Kinds) -> None:
    """From now on, and until the event loop of the command ends, these are the kinds."""
    _known.set(found)


def may_name_a_kind(words: Sequence[str]) -> bool:
    """Whether some of these words may be a kind, so that it has to be known which there are."""
    return len(words) > 1 or any("/" in word for word in words)


def kind_named(text: str) -> Kind:
    """The kind that a word names.

    Raises:
        UsageError: there is none of this name; the text lists those that there are.
    """
    try:
        return kinds().named(text)
    except AmbiguousKind as error:
        raise click.UsageError(str(error)) from None
    except UnknownKind as error:
        known = [word for kind in kinds() for word in (kind.name.lower(), kind.resource.plural, *kind.short_names)]
        meant = nearest(text.lower(), known)
        hint = f". Did you mean '{meant}'?" if meant else ""
        if is_built_in(text):
            hint = f". It can be mirrored, but this manager does not: its operator adds {text} to the setting kinds"
        raise click.UsageError(f"{error}{hint}") from None


def is_built_in(text: str) -> bool:
    """Whether a manager could mirror this kind, if its settings said so."""
    from mirror.kinds.declared.published import every_built_in  # only where something is wrong

    try:
        every_built_in().named(text)
    except UnknownKind:
        return False
    return True


def all_named(words: Sequence[str]) -> list[Named]:
    """The objects that ``NAME …``, ``KIND/NAME …`` or ``KIND NAME …`` mean, each once.

    A first word that names a kind is one where names follow, as for kubectl; a Job of such a name is ``job/NAME``.

    Raises:
        UsageError: a kind is unknown, or there is no name.
    """
    kind = _kind_before(words) if len(words) > 1 else None
    names = words[1:] if kind is not None else words
    return [named(word, kind) for word in dict.fromkeys(names)]


def one_named(words: Sequence[str]) -> Named:
    """The one object that ``NAME``, ``KIND/NAME`` or ``KIND NAME`` means.

    Raises:
        UsageError: these are none, or more.
    """
    if len(words) == 1:
        return named(words[0])
    if len(words) == 2 and not any("/" in word for word in words):
        return Named(kind_named(words[0]), _checked(words[1]))
    raise click.UsageError(f"{' '.join(words)!r}: write NAME, KIND/NAME or KIND NAME")


def _kind_before(words: Sequence[str]) -> Kind | None:
    """The kind that the first of some words names; None where it names none, or names say their kinds themselves.

    Raises:
        UsageError: it may be one of several kinds.
    """
    if any("/" in word for word in words):
        return None
    try:
        return kinds().named(words[0])
    except AmbiguousKind as error:
        raise click.UsageError(str(error)) from None
    except UnknownKind:
        return None


def named(text: str, default: Kind | None = None) -> Named:
    """The object that ``NAME`` or ``KIND/NAME`` means.

    Args:
        text: of the command line.
        default: of which kind a name alone is; None: the table's first.

    Raises:
        UsageError: the kind is unknown, or there is no name.
    """
    word, slash, name = text.partition("/")
    if not slash:
        return Named(default or kinds().default, _checked(text))
    if not name or "/" in name:
        raise click.UsageError(f"{text!r}: write NAME or KIND/NAME")
    return Named(kind_named(word), _checked(name))


def _checked(name: str) -> str:
    """A name that an object can have; raises UsageError."""
    if subdomain_problems(name):
        raise click.UsageError(f"{name!r} is not a valid name: use lower-case letters, digits, '-' and '.'")
    return name


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to be listed: named objects, or all sources of some kinds.

    Invariant: ``kinds`` are those of ``names``, where there are names.
    """

    kinds: tuple[Kind, ...]
    names: tuple[Named, ...] = ()
    are_asked_for: bool = False
    """Somebody has named the kinds, so that one which a cluster does not serve is a failure."""

    @property
    def plain(self) -> Kind:
        """The kind whose objects are shown by name alone, where there are no others."""
        return self.kinds[0] if len(self.kinds) == 1 else kinds().default

    def names_of(self, kind: Kind) -> frozenset[str]:
        """The names of this kind that were given; empty for all."""
        return frozenset(one.name for one in self.names if one.kind is kind)

    def field_selector(self, kind: Kind) -> str:
        """What an API server can be asked for instead of all; empty for all."""
        names = self.names_of(kind)
        return f"metadata.name={next(iter(names))}" if len(names) == 1 else ""

    def is_named(self, kind: Kind, found: Object) -> bool:
        """Whether the object's name is among those that were given."""
        return found.metadata.name in self.names_of(kind)


def chosen(names: Sequence[str], of_kinds: Sequence[str]) -> Chosen:
    """What ``mirror get -k KIND NAME …`` means, or ``mirror get KIND NAME …``; without both, all sources of all kinds.

    Raises:
        UsageError: a kind is unknown, or it is not clear of which one a name is.
    """
    wanted = tuple(dict.fromkeys(map(kind_named, of_kinds)))
    if names and not wanted and (kind := _kind_before(names)) is not None:
        wanted, names = (kind,), names[1:]
    if not names:
        return Chosen(wanted or tuple(kinds()), are_asked_for=bool(wanted))
    if len(wanted) > 1 and not all("/" in name for name in names):
        raise click.UsageError("several kinds: write KIND/NAME")
    found = tuple(named(name, wanted[0] if wanted else None) for name in names)
    return Chosen(tuple(dict.fromkeys(one.kind for one in found)), found, are_asked_for=True)
