"""Paths of fields as people write them: ``spec.replicatedJobs[].template``. Pure; looks into decoded JSON.

A step is a field's name; ``[]`` after it stands for every element of a list. A path that ends in ``[key=value]``
means those elements whose field has this value; ``metadata.annotations[example.com/*]`` names annotations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import msgspec

Json = Any
Place = tuple[str | int, ...]
"""Where one value is: names of fields, and indexes of elements."""

LONGEST = 256
MOST_STEPS = 16
_STEP = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<every>(\[\])?)")
_CHOSEN = re.compile(r"(?P<path>.*[^\]])\[(?P<chosen>[^\[\]]+)\]")
_OTHERS = re.compile(r"(?P<key>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.+)")


_MAPS_OF_TEXT = ("metadata.annotations", "metadata.labels")


class BadPath(ValueError):
    """The text is no path; its text says what is wrong."""


class FieldPath(msgspec.Struct, frozen=True, dict=True):
    """One path; build it with ``of_text``."""

    text: str
    steps: tuple[tuple[str, bool], ...]
    """The name of each field, and whether every element of it is meant."""
    key: str = ""
    """Only elements whose field ``key`` is ``value`` are meant; empty: keys of a map that match ``value``."""
    value: str = ""

    @staticmethod
    def of_text(text: str) -> FieldPath:
        """Read a path.

        Raises:
            BadPath: it is none.
        """
        if len(text) > LONGEST:
            raise BadPath(f"it has more than {LONGEST} characters")
        plain, key, value = text, "", ""
        if (found := _CHOSEN.fullmatch(text)) is not None:
            plain, chosen = found["path"], found["chosen"]
            pair = _OTHERS.fullmatch(chosen)
            key, value = (pair["key"], pair["value"]) if pair else ("", chosen)
        steps = []
        for part in plain.split("."):
            step = _STEP.fullmatch(part)
            if step is None:
                raise BadPath(f"{part!r} is no field; write it like spec.template or spec.tasks[].template")
            steps.append((step["name"], bool(step["every"])))
        if len(steps) > MOST_STEPS:
            raise BadPath(f"it has more than {MOST_STEPS} steps")
        if value and steps[-1][1]:
            raise BadPath("write [] or [key=value], not both")
        if value and not key and plain not in _MAPS_OF_TEXT:
            raise BadPath(f"[{value}] is no choice of elements; write [] or [key=value]")
        return FieldPath(text, tuple(steps), key, value)

    @cached_property
    def plain(self) -> Place | None:
        """Its place, where it means no elements: most paths, which are looked up many times for each object."""
        is_plain = not self.value and not any(is_every for _, is_every in self.steps)
        return tuple(name for name, _ in self.steps) if is_plain else None

    def places(self, body: Json) -> Iterable[Place]:
        """Every place that the path means in a body, where all but its last field exists."""
        if self.plain is None:
            return self._chosen(body)
        return (self.plain,) if isinstance(at(body, self.plain[:-1]), Mapping) else ()

    def _chosen(self, body: Json) -> Iterator[Place]:
        for place in _places(body, self.steps):
            if not self.value:
                yield place
                continue
            found = at(body, place)
            if self.key and isinstance(found, list):
                meant = (
                    i for i, one in enumerate(found) if isinstance(one, Mapping) and one.get(self.key) == self.value
                )
                yield from ((*place, index) for index in meant)
            elif not self.key and isinstance(found, Mapping):
                yield from ((*place, key) for key in found if fnmatchcase(str(key), self.value))

    def first(self, body: Json) -> Json:
        """The value at the first of its places; None where there is none."""
        if self.plain is not None:
            return at(body, self.plain)
        return next((at(body, place) for place in self._chosen(body)), None)


def _places(body: Json, steps: tuple[tuple[str, bool], ...]) -> list[Place]:
    found: list[tuple[Place, Json]] = [((), body)]
    for number, (name, is_every) in enumerate(steps, start=1):
        has_to_be_there = is_every or number < len(steps)
        below: list[tuple[Place, Json]] = []
        for place, value in found:
            if not isinstance(value, Mapping) or (has_to_be_there and name not in value):
                continue
            one = value.get(name)
            if not is_every:
                below.append(((*place, name), one))
            elif isinstance(one, list):
                below.extend(((*place, name, index), element) for index, element in enumerate(one))
        found = below
    return [place for place, _ in found]


def at(body: Json, place: Place) -> Json:
    """The value at a place; None where any step is missing."""
    for step in place:
        if type(body) is dict or (isinstance(step, str) and isinstance(body, Mapping)):
            body = body.get(step)
        elif isinstance(step, int) and isinstance(body, list) and step < len(body):
            body = body[step]
        else:
            return None
    return body


def written(place: Place) -> str:
    """A place as people write it: ``spec.tasks[0].template``."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def without(body: Json, place: Place) -> Json:
    """A body without what is at a place; what is changed of it is copied, the rest shared."""
    if not place or at(body, place[:-1]) is None:
        return body
    step, rest = place[0], place[1:]
    if isinstance(step, int):
        kept = list(body)
        if rest:
            kept[step] = without(kept[step], rest)
        else:
            del kept[step]
        return kept
    if step not in body:
        return body
    if rest:
        return {**body, step: without(body[step], rest)}
    return {key: value for key, value in body.items() if key != step}


def put(body: Json, place: Place, value: Json) -> Json:
    """A body with a value at a place, whose parents are made where they are missing; a list's element has to exist."""
    if not place:
        return value
    step, rest = place[0], place[1:]
    if isinstance(step, int):
        kept = list(body)
        kept[step] = put(kept[step], rest, value)
        return kept
    found = body if isinstance(body, Mapping) else {}
    return {**found, step: put(found.get(step), rest, value)}


def strip(body: Json, path: FieldPath) -> Json:
    """A body without anything that a path means."""
    for place in reversed(tuple(path.places(body))):  # the last element first: those before it keep their index
        body = without(body, place)
    return body
