"""ConfigMaps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from mirror.batch.quoting import quoted
from mirror.batch.syntax import config_key_problems, size
from mirror.batch.violations import Violation, forbidden, invalid, invalid_texts, too_long
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import Builtin
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.registry.resources.bytes64 import canonical, length

LARGEST = 1024 * 1024
"""Bytes of all values of a ConfigMap or a Secret together."""
_UNCHANGEABLE = "field is immutable when `immutable` is set"


class ConfigMaps(Builtin):
    """Texts and bytes under keys, no key twice."""

    struct = "ConfigMap"
    columns = (printers.NAME, Column("Data", description=TEXTS["CONFIG_DATA"]), printers.AGE)

    def decode(self, body: Json) -> Json:
        found = super().decode(body)
        if "binaryData" in found:
            found["binaryData"] = {key: canonical(text) for key, text in found["binaryData"].items()}
        return found

    def check(self, body: Json, context: Context) -> Iterator[Violation]:
        data, binary = body.get("data", {}), body.get("binaryData", {})
        for key in data:
            yield from invalid_texts(f"data[{key}]", key, config_key_problems(key))
            if key in binary:
                yield invalid(f"data[{key}]", quoted(key), "duplicate of key present in binaryData")
        for key in binary:
            yield from invalid_texts(f"binaryData[{key}]", key, config_key_problems(key))
        if sum(map(size, data.values())) + sum(map(length, binary.values())) > LARGEST:
            yield too_long("[]", LARGEST)

    def check_change(self, new: Json, old: Json, context: Context) -> Iterator[Violation]:
        return check_immutable(new, old, ("data", "binaryData"))

    def cells(self, body: Json, now: datetime) -> list[object]:
        count = len(body.get("data", {})) + len(body.get("binaryData", {}))
        return [body["metadata"]["name"], count, printers.age(body, now)]


def check_immutable(new: Json, old: Json, fields: tuple[str, ...]) -> Iterator[Violation]:
    """Once ``immutable`` is set, neither it nor these fields change."""
    if old.get("immutable") is not True:
        return
    if new.get("immutable") is not True:
        yield forbidden("immutable", _UNCHANGEABLE)
    for name in fields:
        if new.get(name) != old.get(name):
            yield forbidden(name, _UNCHANGEABLE)


def kind() -> Kind:
    """``v1`` ``configmaps``."""
    return Kind("", "v1", "ConfigMap", "configmaps", ConfigMaps(), singular="configmap", short_names=("cm",))
