"""What every part of the settings is; the parts themselves are in ``schema`` and ``kinds``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import msgspec


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", dict=True):
    """One mapping of the file; keys are camelCase there."""

    @classmethod
    def of_mapping(cls, values: Mapping[str, object]) -> Self:
        """The mapping with these fields; it remembers that it named them, those with their default among them."""
        made = cls(**values)
        made.__dict__["named"] = frozenset(values)
        return made

    @cached_property
    def named(self) -> frozenset[str]:
        """The fields that its mapping names; of one that code has made, those that are not as they are by default."""
        defaults = type(self)()
        return frozenset(name for name in self.__struct_fields__ if getattr(self, name) != getattr(defaults, name))

    def over(self, base: Self) -> Self:
        """This one, and what it does not name as ``base`` has it."""
        values = {name: getattr(base, name) for name in base.named}
        for name in self.named:
            value, before = getattr(self, name), getattr(base, name)
            values[name] = value.over(before) if isinstance(value, Section) else value
        return type(self).of_mapping(values)

    def as_mapping(self, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """As a file names it, but for these keys."""
        fields = (field for field in msgspec.structs.fields(self) if field.name in self.named)
        keys = {field.encode_name: _plain(getattr(self, field.name)) for field in fields}
        return {key: value for key, value in keys.items() if key not in without}


def _plain(value: object) -> object:
    if isinstance(value, Section):
        return value.as_mapping()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
