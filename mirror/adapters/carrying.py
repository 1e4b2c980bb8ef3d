"""Which parts of a Job follow from source to mirror, and what of them has to be sent again (D4, D9).

A *part* is a place in the object that the API lets a source change. What was carried is noted on the mirror, in the
annotation ``carried``: a digest of each part, and for maps the keys. It tells a change by the user from one made on
the worker, over restarts too. Only what we carry is compared, never defaults or what the worker's admission added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from mirror.kube.objects import JUNK

Json = Any
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode


class Part(msgspec.Struct, frozen=True):
    """One changeable place: its path, whether it is a map that others may add keys to, and when the API allows it."""

    name: str
    path: tuple[str | int, ...]
    is_map: bool = False
    needs_mutable_template: bool = False

    @property
    def pointer(self) -> str:
        return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.path)


def read(body: Json, path: tuple[str | int, ...]) -> Json:
    """The value at a path, or None where any step is missing."""
    for step in path:
        if (type(body) is dict or isinstance(body, Mapping)) and type(step) is str:
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
        else:
            return None
    return body


class Sent(msgspec.Struct, frozen=True):
    """What was carried of one part."""

    digest: str
    keys: tuple[str, ...] = ()


class Carried(msgspec.Struct, frozen=True):
    """What is, or was, carried of all parts."""

    parts: Mapping[str, Sent] = {}

    def as_text(self) -> str:
        """The annotation's value."""
        plain = {name: [sent.digest, *sent.keys] for name, sent in self.parts.items()}
        return _encode_sorted(plain).decode()

    @staticmethod
    def of_text(text: str | None) -> Carried:
        """Read the annotation; nonsense means that nothing is known to have been carried."""
        try:
            plain = msgspec.json.decode(text or "{}", type=dict[str, list[str]])
        except JUNK:
            return Carried()
        return Carried({name: Sent(values[0], tuple(values[1:])) for name, values in plain.items() if values})


def carried_of(values: Mapping[str, Json], parts: tuple[Part, ...]) -> Carried:
    """What to note for a body whose parts have these values; absent parts are left out."""
    sent = {}
    for part in parts:
        value = values.get(part.name)
        if value is not None and value != {} and value != []:
            sent[part.name] = Sent(digest(value), tuple(sorted(value)) if part.is_map else ())
    return Carried(sent)


def digest(value: Json) -> str:
    return blake2b(_encode_sorted(value), digest_size=6).hexdigest()


def contains(have: Json, want: Json) -> bool:
    """Whether everything that was carried is still there; additions by others do not count."""
    if isinstance(want, Mapping):
        return isinstance(have, Mapping) and all(contains(have.get(key), value) for key, value in want.items())
    if isinstance(want, list):
        return isinstance(have, list) and all(any(contains(h, w) for h in have) for w in want)
    return want is None or bool(have == want)


class Difference(msgspec.Struct, frozen=True):
    """One part of the mirror that is not as the source wants it."""

    part: Part
    want: Json
    new_value: Json
    """What to write: for maps with what others added kept."""
    undone: bool
    """It was carried as wanted, and changed on the worker since."""


def differences(
    want: Mapping[str, Json], have: Mapping[str, Json], noted: Carried, parts: tuple[Part, ...]
) -> Iterator[Difference]:
    """Compare a source's parts with its mirror's and with what the mirror says was carried."""
    wanted = carried_of(want, parts)
    for part in parts:
        now, before = wanted.parts.get(part.name), noted.parts.get(part.name)
        value, there = want.get(part.name), have.get(part.name)
        if (now.digest if now else "") != (before.digest if before else ""):
            new_value = _merged(value, there, before) if part.is_map else value
            yield Difference(part, value, new_value, undone=False)
        elif now and not contains(there, value):
            new_value = _merged(value, there, before) if part.is_map else value
            yield Difference(part, value, new_value, undone=True)


def _merged(want: Json, there: Json, before: Sent | None) -> dict[str, Json]:
    ours = before.keys if before else ()
    kept = {key: value for key, value in (there or {}).items() if key not in ours}
    return kept | (want or {})


def patch_operations(difference: Difference, mirror_body: Json) -> list[dict[str, Json]]:
    """JSON Patch operations that write one difference; missing parents are added."""
    path, value = difference.part.path, difference.new_value
    if value is None or value in ({}, []):
        if read(mirror_body, path) is None:
            return []
        return [{"op": "remove", "path": difference.part.pointer}]
    depth = next((i for i in range(1, len(path)) if read(mirror_body, path[:i]) is None), len(path))
    for step in reversed(path[depth:]):
        value = {step: value}
    return [{"op": "add", "path": Part("", path[:depth]).pointer, "value": value}]


def without(found: Mapping[str, Json] | None, drop: Callable[[str], bool]) -> dict[str, Json]:
    """A map without the keys that are to be dropped."""
    return {key: value for key, value in (found or {}).items() if not drop(key)}
