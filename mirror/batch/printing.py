"""How an API server prints values that are more than a word in its causes (E5).

Types of the API machinery print as JSON; everything of batch and core prints with its internal names, absent things
included. For the types of batch that is exact. A pod template prints with the fields of the wire under internal names,
which differs in places from what a server prints; clients show such a value and do not read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.batch.quoting import json_text
from mirror.batch.schema import STRUCTS

_MACHINERY = frozenset(("LabelSelector", "LabelSelectorRequirement", "ObjectMeta", "OwnerReference"))
_OURS = frozenset((("PodFailurePolicyRule", "name"),))
"""Fields that no server has; they are printed only where they are set."""


def labels_text(labels: Mapping[str, str] | None) -> str:
    """A map of texts; none at all is ``null``."""
    if labels is None:
        return "null"
    return "{" + ",".join(f"{json_text(key)}:{json_text(labels[key])}" for key in sorted(labels)) + "}"


def text(value: Any, kind: str) -> str:
    """A canonical value of this type of ``schema``."""
    base = kind.strip("*!")
    if value is None and (kind.startswith("*") or base[:1] in "[{"):
        return "null"
    if base.startswith("["):
        return "[" + ",".join(text(one, base[1:-1]) for one in value) + "]"
    if base.startswith("{"):
        return labels_text(value)
    if base in STRUCTS:
        return _struct(value or {}, base)
    return _scalar(value, base)


def _struct(value: Mapping[str, Any], struct: str) -> str:
    if struct in _MACHINERY:
        parts = [
            f'"{name}":{text(value[name], kind)}'
            for name, kind in STRUCTS[struct].items()
            if value.get(name) is not None
        ]
    elif struct == "PodTemplateSpec":
        meta = _struct(value.get("metadata") or {}, "ObjectMeta")[1:-1]
        parts = [*([meta] if meta else []), f'"Spec":{text(value.get("spec"), "PodSpec")}']
    else:
        parts = [
            f'"{name[0].upper()}{name[1:]}":{text(value.get(name), kind)}'
            for name, kind in STRUCTS[struct].items()
            if (struct, name) not in _OURS or name in value
        ]
    return "{" + ",".join(parts) + "}"


def _scalar(value: Any, kind: str) -> str:
    if isinstance(value, str):
        return json_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return {"s": '""', "i": "0", "b": "false", "q": '"0"', "x": "0"}.get(kind, "null")
