"""Which parts of a Job follow from source to mirror, and what of them has to be sent again (D4, D9).

A *part* is a place in the object that the API lets a source change. What was carried is noted on the mirror, in the
annotation ``carried``: a digest of each part, and for maps the keys. It tells a change by the user from one made on
the worker, over restarts too. Only what we carry is compared, never defaults or what the worker's admission added.
The digest is of the part as the source has it: where settings change what is sent of it, the user has changed nothing.

A note proves that a part was absent only if it is *whole*: its checksum matches and its version knows the part. After
an upgrade, or where someone edited the note, nothing is known of parts that it does not list, and a part of which
nothing is known was not changed by the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from hashlib import blake2b
from typing import Any

import msgspec

from mirror.kube.objects import JUNK

NOTE_VERSION = 1
"""Raised when parts are added: each new part gets ``since`` = the new version."""
_HEADER = ""
"""The entry of a note that holds its version and checksum; no part has this name."""

Json = Any
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode


class Part(msgspec.Struct, frozen=True):
    """One changeable place: its path, whether it is a map that others may add keys to, and when the API allows it."""

    name: str
    path: tuple[str | int, ...]
    is_map: bool = False
    needs_mutable_template: bool = False
    since: int = 1
    """The first ``NOTE_VERSION`` that knows this part."""

    @property
    def field(self) -> str:
        """Its path as people write it: ``spec.template.spec.nodeSelector``."""
        return ".".join(map(str, self.path))

    @property
    def pointer(self) -> str:
        return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.path)


def read(body: Json, path: tuple[str | int, ...]) -> Json:
    """The value at a path, or None where any step is missing."""
    for step in path:
        if type(body) is dict or isinstance(body, Mapping):
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
    version: int = 0
    """The ``NOTE_VERSION`` that wrote it; 0: it is not whole, so parts that it does not list are unknown."""

    def as_text(self) -> str:
        """The annotation's value."""
        plain = {name: [sent.digest, *sent.keys] for name, sent in self.parts.items()}
        if self.version:
            plain[_HEADER] = [str(self.version), digest(plain)]
        return _encode_sorted(plain).decode()

    @staticmethod
    def of_text(text: str | None) -> Carried:
        """Read the annotation; nonsense means that nothing is known to have been carried."""
        try:
            plain = msgspec.json.decode(text or "{}", type=dict[str, list[str]])
        except JUNK:
            return Carried()
        version, checksum = (*plain.pop(_HEADER, ()), "", "")[:2]
        is_whole = checksum == digest(plain) and version.isascii() and version.isdigit() and len(version) < 5
        listed = {name: Sent(values[0], tuple(values[1:])) for name, values in plain.items() if values}
        return Carried(listed, int(version) if is_whole else 0)

    def digest_of(self, part: Part) -> str | None:
        """The digest of what was carried of a part: empty when it was absent, None when that is unknown."""
        sent = self.parts.get(part.name)
        if sent is not None:
            return sent.digest
        return "" if part.since <= self.version else None


def carried_of(
    values: Mapping[str, Json], parts: tuple[Part, ...], *, source: Mapping[str, Json] | None = None
) -> Carried:
    """What to note for a body whose parts have these values; parts that its source has not are left out.

    Args:
        values: what is sent.
        parts: all of them.
        source: what the source has at these parts, where that is something else than is sent.
    """
    sent = {}
    for part in parts:
        value, found = values.get(part.name), (values if source is None else source).get(part.name)
        if found is not None and found != {} and found != []:
            sent[part.name] = Sent(digest(found), tuple(sorted(value or ())) if part.is_map else ())
    return Carried(sent, NOTE_VERSION)


def digest(value: Json) -> str:
    return blake2b(_encode_sorted(value), digest_size=6).hexdigest()


def contains(have: Json, want: Json) -> bool:
    """Whether everything that was carried is still there; additions by others do not count."""
    if want is None or (type(have) is type(want) and have == want):
        return True
    if isinstance(want, Mapping):
        return isinstance(have, Mapping) and all(contains(have.get(key), value) for key, value in want.items())
    if isinstance(want, list):
        return isinstance(have, list) and all(any(contains(h, w) for h in have) for w in want)
    return bool(have == want)


class Cause(Enum):
    """Why a part of the mirror, or the note about it, is not as the source wants it."""

    CHANGED = "changed"
    """The source has another value than was carried."""
    REVERTED = "reverted"
    """It was carried as wanted, and changed on the worker since."""
    UNKNOWN = "unknown"
    """Nothing is known of what was carried."""


class Difference(msgspec.Struct, frozen=True):
    """One part of the mirror, or of its note, that is not as the source wants it."""

    part: Part
    want: Json
    new_value: Json
    """What to write: for maps with what others added kept."""
    cause: Cause
    is_satisfied: bool = False
    """The mirror has this value already; only the note does not list it."""


def differences(
    want: Mapping[str, Json], have: Mapping[str, Json], noted: Carried, wanted: Carried, parts: tuple[Part, ...]
) -> Iterator[Difference]:
    """Compare a source's parts with its mirror's and with what the mirror says was carried.

    Args:
        want: what the mirror should have at each part.
        have: what it has.
        noted: what it says was carried.
        wanted: what it should say.
        parts: all of them.
    """
    for part in parts:
        now, before = wanted.parts.get(part.name), noted.digest_of(part)
        value, there = want.get(part.name), have.get(part.name)
        is_noted = (now.digest if now else "") == before
        if is_noted and (now is None or contains(there, value)):
            continue
        if before is None and now is None:
            continue
        new_value = _merged(value, there, noted.parts.get(part.name)) if part.is_map else value
        cause = Cause.UNKNOWN if before is None else Cause.REVERTED if is_noted else Cause.CHANGED
        is_satisfied = contains(there, value) if before is None else _is_same(there, new_value)
        yield Difference(part, value, new_value, cause, is_satisfied)


def _is_same(have: Json, want: Json) -> bool:
    """Whether writing this value would change nothing; absent and empty are the same."""
    empty: tuple[Json, ...] = (None, {}, [])
    return bool(have == want) or (have in empty and want in empty)


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


def place_of(pointer: str, body: Json) -> tuple[str | int, ...]:
    """Where the path of an operation points to in a body: numbers are indexes in lists, and names elsewhere."""
    place: list[str | int] = []
    for text in pointer.split("/")[1:]:
        step = text.replace("~1", "/").replace("~0", "~")
        is_index = step.isdecimal() and isinstance(read(body, tuple(place)), list)
        place.append(int(step) if is_index else step)
    return tuple(place)


def without_keys(found: Mapping[str, Json] | None, keys: Iterable[str]) -> dict[str, Json]:
    """A map without these few keys: not one of its own, of which there may be tens of thousands, is looked at."""
    kept = dict(found or {})
    for key in keys:
        kept.pop(key, None)
    return kept


def without(found: Mapping[str, Json] | None, drop: Callable[[str], bool]) -> dict[str, Json]:
    """A map without the keys that are to be dropped."""
    return {key: value for key, value in (found or {}).items() if not drop(key)}
