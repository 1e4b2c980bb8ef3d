"""What a value was before an update, where upstream can say so (its ``CorrelatedObject``). Pure.

What is wrong with a value that has not changed is not held against an update (CRD validation ratcheting); ``checking``
and ``rule_evaluation`` ask here whether it has. Items belong to earlier ones by the keys of their list alone: those of
sets and of other lists are compared as the whole list is.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

from mirror.embedded.apiserver.crds.values import Schema


class Correlated:
    """A value, the one before, and their schema."""

    def __init__(self, new: Any, old: Any, schema: Schema) -> None:
        self._new, self._old, self._schema = new, old, schema

    def key(self, name: str) -> Correlated | None:
        """The member of this name, None if it was not there or no schema knows it."""
        if not isinstance(self._old, dict) or not isinstance(self._new, dict):
            return None
        inner = _schema_of(self._schema, name)
        if inner is None or name not in self._old or name not in self._new:
            return None
        return Correlated(self._new[name], self._old[name], inner)

    def item(self, number: int) -> Correlated | None:
        """The item of the new list, None if the list does not tell which one it was."""
        items, old = self._schema.get("items"), self.old_item(number)
        if old is None or not isinstance(items, Mapping):
            return None
        return Correlated(self._new[number], old, items)

    def old_item(self, number: int) -> Any:
        """What an item of the new list was, None if it is not known."""
        key = _key_of(self._schema, self._new[number]) if isinstance(self._new, list) else None
        return None if key is None else self._by_keys.get(key)

    @cached_property
    def _by_keys(self) -> Mapping[Hashable, Any]:
        """The items before; of several with the same keys, the first."""
        old: Sequence[Any] = self._old if isinstance(self._old, list) else ()
        keyed = [(_key_of(self._schema, one), one) for one in reversed(old)]
        return {key: one for key, one in keyed if key is not None}

    @cached_property
    def is_same(self) -> bool:
        """Whether it has not changed; never of an object with members that its schema does not know."""
        new, old = self._new, self._old
        if isinstance(new, dict) and isinstance(old, dict):
            return len(new) == len(old) and all(_is_same(self.key(name)) for name in new)
        if isinstance(new, list) and isinstance(old, list):
            if self._schema.get("x-kubernetes-list-type") != "map":
                return _identical(new, old)
            return len(new) == len(old) and all(_is_same(self.item(number)) for number in range(len(new)))
        return _identical(new, old)


def _is_same(one: Correlated | None) -> bool:
    return one is not None and one.is_same


def _schema_of(schema: Schema, name: str) -> Schema | None:
    inner = (schema.get("properties") or {}).get(name, schema.get("additionalProperties"))
    return inner if isinstance(inner, Mapping) else None


def _key_of(schema: Schema, item: Any) -> Hashable | None:
    """What tells an item of a list from the others; None if nothing does."""
    names = schema.get("x-kubernetes-list-map-keys") or ()
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(item, dict) or not names:
        return None
    found = []
    for name in names:
        value = item.get(name)
        if not isinstance(value, str | int | float):
            return None
        found.append((type(value), value))
    return tuple(found)


def _identical(new: Any, old: Any) -> bool:
    """Whether two values of JSON are the same for Go: 1 is neither 1.0 nor true."""
    if type(new) is not type(old):
        return False
    if isinstance(new, dict):
        return new.keys() == old.keys() and all(_identical(one, old[name]) for name, one in new.items())
    if isinstance(new, list):
        return len(new) == len(old) and all(map(_identical, new, old))
    return bool(new == old)
