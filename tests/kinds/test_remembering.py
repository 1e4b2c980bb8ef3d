"""What is kept of the last objects, and what is not."""

from __future__ import annotations

import msgspec

from mirror.kinds import remembering
from mirror.kinds.remembering import MOST_KEPT, once_per_object
from mirror.kube.objects import Meta, Object


def made(name: str, size: int = 0) -> Object:
    return Object(Meta(name=name), status=msgspec.Raw(b"x" * size))


class Reader:
    """Counts how often each object was read."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.read = once_per_object(self._read)

    def _read(self, found: Object) -> str:
        self.names.append(found.metadata.name)
        return found.metadata.name.upper()


def test_an_object_is_read_once() -> None:
    """A change makes another object, which is read anew, whatever its name."""
    reader, first, second = Reader(), made("a"), made("a")

    assert [reader.read(one) for one in (first, first, second, first)] == ["A"] * 4
    assert reader.names == ["a", "a"]


def test_few_are_kept_and_none_of_the_large() -> None:
    """D29: what has gone from every cache is not held here in any amount."""
    reader = Reader()
    objects = [made(str(n)) for n in range(MOST_KEPT + 1)]
    for one in objects:
        reader.read(one)
    reader.read(objects[0])
    reader.read(objects[-1])
    assert reader.names.count("0") == 2
    assert reader.names.count(str(MOST_KEPT)) == 1

    large = made("large", remembering.LARGEST_KEPT_BYTES + 1)
    assert (reader.read(large), reader.read(large)) == ("LARGE", "LARGE")
    assert reader.names.count("large") == 2
