"""All functions, by name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from mirror.embedded.apiserver.cel.functions import forms, kubernetes, lists, patterns, standard, texts
from mirror.embedded.apiserver.cel.functions.declared import Overload


@cache
def functions() -> Mapping[str, Sequence[Overload]]:
    """The overloads of each name; made when the first rule is read."""
    found: dict[str, list[Overload]] = {}
    for room in (standard, texts, lists, patterns, kubernetes, forms):
        for one in room.overloads():
            found.setdefault(one.name, []).append(one)
    return found
