"""The kinds of objects that are served: one ``Kind`` each, and the table of all of them.

Built-in kinds come from ``resources``; those of custom resource definitions come and go at run time (``crds``).
``server`` finds the kind of a path here; ``discovery`` and ``openapi`` tell clients what is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field

from mirror.embedded.apiserver.apimachinery.strategy import Strategy

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_NOT_TOLD = ("create", "patch", "update")
"""Of a kind whose definition is being deleted."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object in one version."""

    group: str
    version: str
    kind: str
    plural: str
    strategy: Strategy
    """Also says what its fields are, which columns it has, and its subresources."""
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    is_namespaced: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    is_ending: bool = False
    """Whether its definition is being deleted: nothing new is created."""
    storage: InitVar[str] = ""
    """Kinds that share their objects with another (versions of one resource) share this; the default is their own."""
    api_version: str = field(init=False)
    """``batch/v1``, or ``v1`` in the core group."""
    resource: str = field(init=False)
    """``jobs.batch``, or ``pods``."""
    stored_as: str = field(init=False)
    """The name of its objects in storage."""

    def __post_init__(self, storage: str) -> None:
        # Once and not as properties: each request asks for them a dozen times.
        object.__setattr__(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)
        object.__setattr__(self, "resource", f"{self.plural}.{self.group}" if self.group else self.plural)
        object.__setattr__(self, "stored_as", storage or self.resource)

    @property
    def told_verbs(self) -> tuple[str, ...]:
        """What discovery says that can be done; of one whose definition is being deleted less than is served."""
        return tuple(one for one in self.verbs if one not in _NOT_TOLD) if self.is_ending else self.verbs

    @property
    def refused_group(self) -> str:
        """The group that refusals name: that of the kind as which it is stored."""
        return self.group if self.strategy.stored_group is None else self.strategy.stored_group


@dataclass(slots=True)
class Registry:
    """Every kind that is served now."""

    _kinds: dict[tuple[str, str, str], Kind] = field(default_factory=dict)
    generation: int = 0
    """Goes up with each change, so that what is derived can be remembered."""

    def add(self, kind: Kind) -> None:
        """Serve it, in place of what was served under its name."""
        self._kinds[kind.group, kind.version, kind.plural] = kind
        self.generation += 1

    def remove(self, group: str, version: str, plural: str) -> None:
        """Serve it no more."""
        if self._kinds.pop((group, version, plural), None) is not None:
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind of a path."""
        return self._kinds.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind that an object's ``apiVersion`` and ``kind`` name."""
        return next((one for one in self._kinds.values() if (one.api_version, one.kind) == (api_version, kind)), None)

    def versions(self) -> Mapping[str, Mapping[str, list[Kind]]]:
        """Groups with their versions and the kinds of each, in the order in which they were added."""
        found: dict[str, dict[str, list[Kind]]] = {}
        for (group, version, _), kind in self._kinds.items():
            found.setdefault(group, {}).setdefault(version, []).append(kind)
        return found

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._kinds.values()))
