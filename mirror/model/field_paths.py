"""Paths of fields as people write them: ``spec.replicatedJobs[].template``. Pure; looks into decoded JSON.

A step is a field's name; ``[]`` after it stands for every element of a list. A path that ends in ``[key=value]``
means those elements whose field has this value; ``metadata.annotations[example.com/*]`` names annotations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
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


class FieldPath(msgspec.Struct, frozen=True):
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

    def places(self, body: Json) -> Iterator[Place]:
        """Every place that the path means in a body, where all but its last field exists."""
        for place in _places(body, self.steps, ()):
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
        return next((at(body, place) for place in self.places(body)), None)


def _places(found: Json, steps: tuple[tuple[str, bool], ...], before: Place) -> Iterator[Place]:
    if not steps:
        yield before
        return
    (name, is_every), rest = steps[0], steps[1:]
    if not isinstance(found, Mapping) or (name not in found and (rest or is_every)):
        return
    below = found.get(name)
    if not is_every:
        yield from _places(below, rest, (*before, name))
    elif isinstance(below, list):
        for index, one in enumerate(below):
            yield from _places(one, rest, (*before, name, index))


def at(body: Json, place: Place) -> Json:
    """The value at a place; None where any step is missing."""
    for step in place:
        if isinstance(step, str) and isinstance(body, Mapping):
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
    for place in reversed(list(path.places(body))):  # the last element first: those before it keep their index
        body = without(body, place)
    return body
