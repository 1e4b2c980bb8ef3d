"""Which objects of several stores are at rest: all but the newest are packed, since there may be many (D29).

What is counted is the objects of all stores that share it, and not of each: of a thousand workers each has a few.
Used by ``store``.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol
from weakref import ReferenceType, ref

from mirror.kube.objects import Object
from mirror.kube.packing import Packed, unpack

_Name = tuple[str, str]
"""Namespace and name."""
_MOST_ASKED = 64
"""Packed objects that stay unpacked for those who ask again, until others take their place."""


class Shelf(Protocol):
    """A store that has objects packed."""

    def pack(self, name: _Name) -> None:
        """Pack one that is stored as it came."""


_Key = tuple[ReferenceType[Shelf], _Name]


class Rest:
    """Tells stores of objects of one kind what to pack; not for several threads.

    Invariants: ``_newest`` has all that could be packed and are not, by when they were put, and no more than it may; of
    a store that is gone they leave it in their turn.
    """

    most_unpacked = 4096
    """Of the newest objects: they stay as they came. Some 15 MiB, or a minute at the largest rates."""

    def __init__(self) -> None:
        self._newest: OrderedDict[_Key, None] = OrderedDict()
        # Of packed ones: a look at one asks for it several times.
        self._asked: dict[_Key, Object] = {}

    def put(self, shelf: Shelf, name: _Name, found: Object) -> None:
        """An object was stored as it came: one more at the most is packed."""
        key = ref(shelf), name
        self._newest.pop(key, None)
        self._asked.pop(key, None)
        if type(found) is not Object:  # some know more of an object than its parts, some less
            return
        self._newest[key] = None
        if len(self._newest) > self.most_unpacked:
            (oldest, of_it), _ = self._newest.popitem(last=False)
            if (theirs := oldest()) is not None:
                theirs.pack(of_it)

    def drop(self, shelf: Shelf, name: _Name) -> None:
        """An object is stored no more."""
        key = ref(shelf), name
        self._newest.pop(key, None)
        self._asked.pop(key, None)

    def unpack(self, shelf: Shelf, name: _Name, packed: Packed) -> Object:
        """An object that is at rest; the same one for those who ask again soon."""
        key = ref(shelf), name
        found = self._asked.get(key)
        if found is None:
            if len(self._asked) >= _MOST_ASKED:
                self._asked.clear()
            found = self._asked[key] = unpack(packed)
        return found
