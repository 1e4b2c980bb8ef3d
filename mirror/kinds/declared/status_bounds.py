"""How much of a worker's status is stored: what the kind takes, and what its source has room for (D29). Pure.

An API server refuses an object that is larger than its etcd takes, by an error that looks like one of its own: a source
whose end did not fit in would never be over.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import msgspec

from mirror.batch import conditions as lists
from mirror.batch import views
from mirror.kube.amounts import MOST_VALUES as MOST_VALUES_READ
from mirror.kube.amounts import amount, most_amount
from mirror.kube.objects import Object

Json = Any

MOST_STORED_BYTES = 3 * 2**19
"""Of one object: etcd's ``--max-request-bytes`` as it is by default."""
RESERVED_BYTES = 64 * 1024
"""For our conditions and annotations, and for managed fields of metadata."""
LEAST_ROOM_BYTES = 8 * 1024
"""So much is tried in any case: the conditions, which say how it ended."""
RESERVED_VALUES = 2_000
"""For our conditions, the rest of metadata, and its managed fields."""
LEAST_VALUES = 1_000
"""So many are tried in any case: 64 conditions have less."""
_VALUES_OF_ONE, _VALUES_OF_SPEC = 3, 5
"""An object of more than ``amounts.MOST_VALUES`` is not read whole, not by us either: its user's changes would not be
seen any more. Managed fields name each value anew, which takes two more; of what users write for each of two managers,
such as one that applies and one that updates."""
MOST_VALUES = (MOST_VALUES_READ - RESERVED_VALUES) // _VALUES_OF_ONE
"""Of one status, where its source has hardly any."""
_MOST_MANAGED = 3
"""Managed fields take at most about so many times what they are about."""
_MEMBER_BYTES, _ITEM_BYTES = 9, 40
"""Of managed fields: of one member, and of one item of a list whose items have a key, beside what these are called."""
BRIEF_CHARACTERS = 100
"""Of a condition's message where all of it is too much: an end without its whole message is better than none."""
_AROUND_BYTES = 4
"""A member's quotes, colon and comma."""
_KEYS = ("name", "type")
_encode = msgspec.json.encode


class Room(msgspec.Struct, frozen=True):
    """What a status may have on its source."""

    bytes: int | None = None
    """Its managed fields included; None: enough."""
    values: int = MOST_VALUES
    """As ``amounts.amount`` counts them, without managed fields."""


ENOUGH = Room()


def room_beside(source: Object, status_bytes: int) -> Room:
    """What a status of about this size may have beside all else of a source."""
    return Room(_bytes_beside(source, status_bytes), _values_beside(source, status_bytes))


def _bytes_beside(source: Object, status_bytes: int) -> int | None:
    known = len(source.spec) + status_bytes
    if (1 + _MOST_MANAGED) * known + 4 * RESERVED_BYTES <= MOST_STORED_BYTES - RESERVED_BYTES:
        return None  # all annotations together have 256 KiB at most
    spec = len(source.spec) + managed_bytes(source.spec_dict())
    return max(LEAST_ROOM_BYTES, MOST_STORED_BYTES - RESERVED_BYTES - spec - len(_encode(source.metadata)))


def _values_beside(source: Object, status_bytes: int) -> int:
    """A status that takes no more bytes than this has no more values either."""
    texts = len(source.labels) + len(source.annotations)
    room = _values_left(most_amount(bytes(source.spec)) + texts)
    return room if room >= status_bytes else _values_left(amount(source.spec_dict()) + texts)


def _values_left(beside: int) -> int:
    return max(LEAST_VALUES, (MOST_VALUES_READ - RESERVED_VALUES - _VALUES_OF_SPEC * beside) // _VALUES_OF_ONE)


def bounded(
    status: dict[str, Json], limit: int, room: Room, *, telling: Container[str] = ()
) -> tuple[dict[str, Json], int]:
    """Without its largest fields, as many as are too much, and how many these are; what tells of its end goes last.

    Args:
        status: of the worker; where its conditions are too much, their messages are shortened first.
        telling: the fields that tell of its end; of others conditions go last.
        limit: bytes of it that its kind takes.
        room: as ``room_beside`` has it.
    """
    kept = _bounded(status, limit, room, telling)
    if "conditions" in status and "conditions" not in kept:
        briefly = list(map(_brief, lists.of(status)))
        kept = _bounded({**status, "conditions": briefly}, limit, room, telling)
    return kept, len(status) - len(kept)


def _bounded(status: dict[str, Json], limit: int, room: Room, telling: Container[str]) -> dict[str, Json]:
    sizes = {key: len(_encode(value)) + len(key) + _AROUND_BYTES for key, value in status.items()}
    size = sum(sizes.values())
    # A value takes a byte at least.
    if size <= min(limit, room.values) and (room.bytes is None or (1 + _MOST_MANAGED) * size <= room.bytes):
        return status
    values = {key: 1 + amount(value) for key, value in status.items()}
    managed = {key: managed_bytes({key: value}) for key, value in status.items()}
    kept, count, stored = dict(status), 1 + sum(values.values()), size + sum(managed.values())
    for key in sorted(kept, key=lambda key: (key in telling, key == "conditions", -sizes[key])):
        if size <= limit and count <= room.values and (room.bytes is None or stored <= room.bytes):
            break
        del kept[key]
        size, count, stored = size - sizes[key], count - values[key], stored - sizes[key] - managed[key]
    return kept


def _brief(condition: Mapping[str, Json]) -> Mapping[str, Json]:
    return {**condition, "message": views.text(condition.get("message"))[:BRIEF_CHARACTERS]}


def managed_bytes(value: Json) -> int:
    """About how much the managed fields of a part take, at most where its lists have keys."""
    if isinstance(value, Mapping):
        return sum(len(key) + _MEMBER_BYTES + managed_bytes(one) for key, one in value.items())
    if isinstance(value, list):
        items = [one for one in value if isinstance(one, Mapping)]
        keys = (str(one.get(name, "")) for one in items for name in _KEYS)
        return len(items) * _ITEM_BYTES + sum(map(len, keys)) + sum(map(managed_bytes, items))
    return 0
