"""The field that a rule is about (``fieldPath``): a simple path below its value. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mirror.embedded.apiserver.crds.values import Schema

_TOKEN = re.compile(r"'.*?(?<!\\)'|'.*|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPES = dict(zip("abfnrtv'\\", "\a\b\f\n\r\t\v'\\", strict=True))
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def field_path(path: str, schema: Schema) -> str | None:
    """The path as errors have it, None if it leads to no field of the schema."""
    found = ""
    tokens = iter(_TOKEN.findall(path))
    for token in tokens:
        name = next(tokens, "")
        if token == "[":
            if len(name) < 2 or name[0] != "'" or name[-1] != "'" or next(tokens, "") != "]":
                return None
            name = _ESCAPE.sub(lambda match: _ESCAPES.get(match.group(1), ""), name[1:-1])
        elif token != "." or not name:
            return None
        properties, additional = schema.get("properties"), schema.get("additionalProperties")
        if properties is not None:
            if name not in properties:
                return None
            schema = properties[name]
            found += f".{name}" if found else name
        elif isinstance(additional, Mapping):
            schema = additional
            found += f"[{name}]"
        else:
            return None
    return found
