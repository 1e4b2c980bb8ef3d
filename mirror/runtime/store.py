"""What one list+watch has shown, by namespace and name, with indexes.

Filled by ``informer``; read by the controllers. Objects in it are immutable by convention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from mirror.kube.objects import Meta, Object, keep_spec
from mirror.kube.packing import Packed, Packer, unpack
from mirror.runtime.rest import Rest

Name = tuple[str, str]
"""Namespace and name."""

IndexFunction = Callable[[Object], Iterable[str]]

EVERYWHERE = ""


def name_of(found: Object) -> Name:
    return found.metadata.namespace, found.metadata.name


class Store:
    """Objects of one kind on one cluster.

    Invariants: ``_by_index[i][v]`` holds exactly the names of the stored objects for which index function i yields v;
    ``_enter`` and ``_leave`` are called with each name that comes and goes.
    """

    def __init__(
        self,
        indexes: Mapping[str, IndexFunction] | None = None,
        *,
        on_count: Callable[[str, str, int], None] = lambda index, value, by: None,
        rest: Rest | None = None,
    ) -> None:
        """What it is to do with its objects.

        Args:
            indexes: by their names.
            on_count: is called with an index, a value, and by how much ``count`` of them has changed just now, whoever
                changed it.
            rest: packs what has not changed for long, where there may be many; each read may give another object.
        """
        self._on_count = on_count
        self._objects: dict[Name, Object | Packed] = {}
        # How many objects each namespace has that has any.
        self._namespaces: dict[str, int] = {}
        self._rest = rest
        self._packer = Packer()
        functions = dict(indexes or {})
        self._by_index: dict[str, dict[str, set[Name]]] = {index: {} for index in functions}
        # What each stored object was indexed by, so that taking it out costs no second look at it.
        self._values: dict[str, dict[Name, tuple[str, ...]]] = {index: {} for index in functions}
        self._functions = [(index, function, self._values[index]) for index, function in functions.items()]
        # The newest version that the stream of a scope (a namespace, or EVERYWHERE) has shown. An answer to a write
        # that is not newer tells nothing that the stream has not told already, a deletion since then included.
        self._progress: dict[str, int] = {}
        self.turned_back = 0
        """How often a stream has begun anew in another past: a backup was restored."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        for found in list(self._objects.values()):
            yield unpack(found) if isinstance(found, Packed) else found

    def get(self, namespace: str, name: str) -> Object | None:
        found = self._objects.get((namespace, name))
        if isinstance(found, Packed):
            assert self._rest is not None
            return self._rest.unpack(self, (namespace, name), found)
        return found

    def metadata_of(self, namespace: str, name: str) -> Meta | None:
        """Of one object, whose other parts stay packed."""
        found = self._objects.get((namespace, name))
        return found.metadata if found is not None else None

    def metadata(self) -> list[Meta]:
        """Of all objects: what is read of many at a time, since it is not packed."""
        return [found.metadata for found in self._objects.values()]

    def names(self, index: str, value: str) -> frozenset[Name]:
        return frozenset(self._by_index[index].get(value, ()))

    def count(self, index: str, value: str) -> int:
        return len(self._by_index[index].get(value, ()))

    def values(self, index: str, name: Name) -> tuple[str, ...]:
        """The values by which an index finds an object, without a look at the object itself."""
        return self._values[index].get(name, ())

    def names_in(self, scope: str) -> list[Name]:
        """All names of a scope: one namespace, or everywhere."""
        if scope == EVERYWHERE:
            return list(self._objects)
        return [name for name in self._objects if name[0] == scope] if scope in self._namespaces else []

    def namesakes(self, name: str) -> list[Name]:
        """All of this name, in whatever namespace: a look at each namespace, not at each object."""
        return [one for namespace in self._namespaces if (one := (namespace, name)) in self._objects]

    def put(self, found: Object) -> Object | None:
        """Store an object; return the one it replaces."""
        name = name_of(found)
        old = self._objects.get(name)
        self._objects[name] = found
        if old is None:
            self._enter(name)
        if self._rest is not None:
            self._rest.put(self, name, found)
        for index, function, before in self._functions:
            values = tuple(function(found))
            if values != before.get(name, ()):
                self._index(index, name, values)
        return unpack(old) if isinstance(old, Packed) else old

    def index_again(self, index: str, name: Name) -> None:
        """What an index function says of an object depends on something else that has changed."""
        found = self.get(*name)
        function = next(function for one, function, _ in self._functions if one == index)
        values = tuple(function(found)) if found is not None else ()
        if values != self.values(index, name):
            self._index(index, name, values)

    def remove(self, name: Name) -> Object | None:
        """Forget an object; return it if it was there."""
        old = self._objects.pop(name, None)
        if old is not None:
            self._leave(name)
        if self._rest is not None:
            self._rest.drop(self, name)
        for index, values in self._values.items():
            if name in values:
                self._index(index, name, ())
        return unpack(old) if isinstance(old, Packed) else old

    def _enter(self, name: Name) -> None:
        """An object of this name is stored, and none was before."""
        self._namespaces[name[0]] = self._namespaces.get(name[0], 0) + 1

    def _leave(self, name: Name) -> None:
        """No object of this name is stored any more."""
        left = self._namespaces[name[0]] - 1
        if left:
            self._namespaces[name[0]] = left
        else:
            del self._namespaces[name[0]]

    def pack(self, name: Name) -> None:
        """Keep one packed that is stored as it came (``Rest``), by a pattern of our own, whatever other stores have."""
        stored = self._objects[name]
        assert isinstance(stored, Object)
        self._objects[name] = self._packer.pack(stored)

    def _index(self, index: str, name: Name, values: tuple[str, ...]) -> None:
        """Let an index find an object by these values, and by no others."""
        before = self._values[index].get(name, ())
        by_value = self._by_index[index]
        for value in before:
            by_value[value].discard(name)
            if not by_value[value]:
                del by_value[value]
        for value in values:
            by_value.setdefault(value, set()).add(name)
        if values:
            self._values[index][name] = values
        else:
            del self._values[index][name]
        came, went = set(values), set(before)
        for value in went - came:
            self._on_count(index, value, -1)
        for value in came - went:
            self._on_count(index, value, 1)

    def advance(self, scope: str, version: int) -> None:
        """The stream of this scope has shown everything up to this version."""
        if version > self._progress.get(scope, 0):
            self._progress[scope] = version

    def progress(self, scope: str) -> int:
        """The newest version that the stream of this scope has shown."""
        return self._progress.get(scope, 0)

    def restart(self, scope: str, version: int, *, has_other_past: bool = False) -> None:
        """The stream of this scope begins anew at a version, maybe an older one, or a raised one (a restored etcd)."""
        self.turned_back += has_other_past or version < self.progress(scope)
        self._progress[scope] = version

    def read_own_write(self, written: Object) -> bool:
        """Take the server's answer to a write of ours before the watch brings it; return whether it was news.

        Keeps us from deciding twice on what we have just changed. An answer that is older than what the stream has
        shown is ignored: the object may be gone since.
        """
        scope = written.metadata.namespace
        progress = self._progress.get(scope, self._progress.get(EVERYWHERE, 0))
        old = self.get(*name_of(written))
        if written.version <= max(progress, old.version if old else 0):
            return False
        keep_spec(written, old)
        self.put(written)
        return True
