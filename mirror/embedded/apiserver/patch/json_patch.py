"""JSON Patch (RFC 6902) as the server's library does it.

It differs from the text: ``replace`` also makes a member that is missing, and a list's index may count from its end.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mirror.embedded.apiserver.apimachinery.objects import copied

_MOST_COPIED = 3 * 2**20


class DoesNotApply(ValueError):
    """An operation does not fit the object, or a test failed."""


def patched(body: Any, operations: list[dict[str, Any]], *, sorts: bool = False) -> Any:
    """The body after all operations; a new one, the old one is kept.

    ``sorts``: objects in which something was looked for are sorted by name, as they come out of the library.

    Raises:
        DoesNotApply: one of them cannot be done, so none is.
    """
    patching = _Patching(copied(body))
    for operation in operations:
        patching.apply(operation)
    if sorts:
        patching.sort()
    return patching.document


class _Patching:
    """One document on its way through the operations."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._copied = 0
        self._touched: dict[int, dict[str, Any]] = {}
        """By identity; kept alive here, so that none comes twice."""

    def apply(self, operation: dict[str, Any]) -> None:
        """Do it. Raises: DoesNotApply."""
        path = _text(operation, "path")
        match operation.get("op"):
            case "add":
                self._add(path, copied(operation.get("value")))
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, copied(operation.get("value")))
            case "move":
                source = _text(operation, "from")
                value = self._get(source)
                self._remove(source)
                self._add(path, value)
            case "copy":
                self._copy(path, _text(operation, "from"))
            case "test":
                found = self.document if path == "" else self._get(path)
                if not same(found, operation.get("value")):
                    raise DoesNotApply(f"testing value {path} failed")
            case _:
                raise DoesNotApply(f"Unexpected kind: {operation.get('op')}")

    def sort(self) -> None:
        """Sort what was looked into."""
        for one in self._touched.values():
            members = sorted(one.items())
            one.clear()
            one.update(members)

    def _copy(self, path: str, source: str) -> None:
        """Copies of copies grow quickly, so there is a limit to all of them."""
        data = msgspec.json.encode(self._get(source))
        self._copied += len(data)
        if self._copied > _MOST_COPIED:
            raise DoesNotApply(f"the accumulated size increase of copy operations is more than {_MOST_COPIED}")
        self._add(path, msgspec.json.decode(data))

    def _add(self, path: str, value: Any) -> None:
        container, key = self._find(path)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container) + 1), value)

    def _remove(self, path: str) -> None:
        container, key = self._find(path)
        if isinstance(container, list):
            del container[_index(key, len(container))]
        elif key in container:
            del container[key]
        else:
            raise DoesNotApply(f"Unable to remove nonexistent key: {key}")

    def _replace(self, path: str, value: Any) -> None:
        if path == "":
            if not isinstance(value, dict | list):
                raise DoesNotApply("replace operation value must be object or array")
            self.document = value
            return
        container, key = self._find(path)
        if isinstance(container, list):
            container[_index(key, len(container))] = value
        else:
            container[key] = value

    def _get(self, path: str) -> Any:
        container, key = self._find(path)
        return container[_index(key, len(container))] if isinstance(container, list) else container.get(key)

    def _find(self, path: str) -> tuple[Any, str]:
        """The list or object that has, or will have, what the path names; and under which name."""
        steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
        found = self.document
        if len(steps) < 2:
            raise DoesNotApply(f"doc is missing path: {path}")
        self._touch(found)
        for step in steps[1:-1]:
            found = found[_index(step, len(found))] if isinstance(found, list) else found.get(step)
            if not isinstance(found, dict | list):
                raise DoesNotApply(f"doc is missing path: {path}")
            self._touch(found)
        return found, steps[-1]

    def _touch(self, found: Any) -> None:
        if isinstance(found, dict):
            self._touched.setdefault(id(found), found)


def same(one: Any, other: Any) -> bool:
    """Whether two values are written alike; a boolean is no number, 1 is not 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def _index(key: str, length: int) -> int:
    sign = 1 if key[:1] in "+-" and key else 0
    if not (key[sign:].isascii() and key[sign:].isdigit()) or len(key) > 18:
        raise DoesNotApply(f"not an index: {key[:64]}")
    position = int(key)
    if position < -length or position >= length:
        raise DoesNotApply(f"Unable to access invalid index: {position}")
    return position + length if position < 0 else position


def _text(operation: dict[str, Any], name: str) -> str:
    found = operation.get(name)
    if not isinstance(found, str):
        raise DoesNotApply(f"operation missing {name} field")
    return found
