"""Secrets that a control plane keeps with its data, where no client sees them: what signs tokens and certificates.

A control plane whose data outlives the process knows the tokens and certificates that it gave out before.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import msgspec

from mirror.embedded.apiserver.storage.mvcc import Storage

_STORED_AS = "-keys"
"""No kind is stored under a name like this."""


class _Meta(msgspec.Struct):
    name: str
    uid: str


class _Key(msgspec.Struct):
    metadata: _Meta
    value: str


def kept(storage: Storage, name: str, make: Callable[[], bytes]) -> bytes:
    """The secret of this name; made when it is not there."""
    record = storage.get(_STORED_AS, "", name)
    if record is not None:
        return base64.b64decode(msgspec.json.decode(record.raw, type=_Key).value)
    value = make()
    raw = msgspec.json.encode(_Key(_Meta(name, name), base64.b64encode(value).decode()))
    storage.write(_STORED_AS, "", name, lambda _: raw, replacing=None, labels={})
    return value
