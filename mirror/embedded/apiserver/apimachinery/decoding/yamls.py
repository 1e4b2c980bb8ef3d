"""YAML of requests as JSON, read by the rules of YAML 1.1 that the server's library keeps.

Only the first document counts. What JSON has no word for becomes text: keys that are numbers, dates.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import yaml

from mirror.embedded.apiserver.apimachinery.decoding.text import MOST_VALUES

_MERGE = "tag:yaml.org,2002:merge"
_DEEPEST = 200
"""Levels that are read; the server reads more, nobody writes them."""
_MOST_DIGITS = 300
"""Of a number; what has more is text. Python does not write numbers of thousands of digits."""

_BOOLEANS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|[0-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_ESCAPED_SLASH = re.compile(r"(?:[^\\]|\\[^/])*\\/", re.DOTALL)
_ONLY_IN_JSON = re.compile(rb"\\(?:/|u[dD][89a-fA-F])|\x7f|\xc2[\x80-\x84\x86-\x9f]|\xed[\xa0-\xbf]|\xef\xbf[\xbe\xbf]")


class NotYaml(ValueError):
    """The text is no YAML; says why."""


def to_json(data: bytes) -> tuple[bytes, list[str]]:
    """The first document as JSON, and complaints of keys that are there twice.

    Raises:
        NotYaml: there is none.
    """
    try:
        _check_depth(data)
        loader = yaml.CSafeLoader(data)
        node = loader.get_node() if loader.check_node() else None
        building = _Building()
        value = None if node is None else building.value(node, 0)
    except NotYaml:
        raise
    except yaml.MarkedYAMLError as error:
        raise NotYaml(f"yaml: {_line(error)}{error.problem or error.context or 'cannot be read'}") from error
    except yaml.reader.ReaderError as error:
        raise NotYaml(f"yaml: {error.reason}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotYaml(f"yaml: {' '.join(str(error).split())[:200]}") from error
    complaints = ["yaml: unmarshal errors:\n  " + "\n  ".join(building.twice)] if building.twice else []
    return msgspec.json.encode(value), complaints


def is_like_json(data: bytes) -> bool:
    """Whether what is JSON means the same as YAML: escapes and characters that YAML does not know are not in it."""
    return _ONLY_IN_JSON.search(data) is None


def _check_depth(data: bytes) -> None:
    """Look at the first document's pieces one by one: what builds values of them does so by recursion, in C.

    Raises:
        NotYaml: they are nested too deeply, or too many: a large body is better sent as JSON. Or one is wrong.
    """
    depth = 0
    slashed = data.decode(errors="replace") if b"\\/" in data else ""
    for count, event in enumerate(yaml.parse(data, Loader=yaml.CSafeLoader)):
        if count > MOST_VALUES:
            raise NotYaml("yaml: document has too many values")
        if slashed and isinstance(event, yaml.ScalarEvent) and event.style == '"':
            _check_escapes(slashed, event)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise NotYaml("yaml: exceeded max depth of 10000")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentEndEvent):
            return


def _check_escapes(data: str, event: yaml.ScalarEvent) -> None:
    """The server's library does not know the escaped slash of JSON."""
    start, end = event.start_mark, event.end_mark
    found = _ESCAPED_SLASH.match(data[start.index : end.index]) if start and end else None
    if start and found is not None:
        line = start.line + found[0].count("\n")
        raise NotYaml(f"yaml: {f'line {line + 1}: ' if line else ''}found unknown escape character")


class _Building:
    """Makes plain values of nodes; what is referred to many times is counted each time, so that it cannot explode."""

    def __init__(self) -> None:
        self.twice: list[str] = []
        self._left = MOST_VALUES

    def value(self, node: yaml.Node, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise NotYaml("yaml: document contains excessive aliasing")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(one, depth + 1) for one in node.value]
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE or (key_node.value == "<<" and getattr(key_node, "style", None) is None):
                self._merge(merged, value_node, depth)
                continue
            key = _key(self.value(key_node, depth + 1))
            if key in found:
                self.twice.append(f'line {key_node.start_mark.line + 1}: key "{key}" already set in map')
            found[key] = self.value(value_node, depth + 1)
        return {**merged, **found}

    def _merge(self, merged: dict[str, Any], node: yaml.Node, depth: int) -> None:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                raise NotYaml("yaml: map merge requires map or sequence of maps as the value")
            for key, value in self._mapping(part, depth + 1).items():
                merged.setdefault(key, value)


def _key(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        return "null"
    raise NotYaml("yaml: unsupported map key")


def _scalar(node: yaml.Node) -> Any:
    text: str = node.value
    if getattr(node, "style", None) or (node.tag == "tag:yaml.org,2002:str" and not _is_plain(text)):
        return text
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        found = float(text)
        return text if found in (float("inf"), float("-inf")) else found
    return text


def _is_plain(text: str) -> bool:
    """Whether a text without quotes may be something else, though PyYAML takes it for text."""
    return text in _BOOLEANS or bool(_INTEGER.fullmatch(text) or _FLOAT.fullmatch(text))


def _integer(text: str) -> Any:
    digits = text.replace("_", "")
    sign, bare = (digits[0], digits[1:]) if digits[0] in "+-" else ("", digits)
    if len(bare) >= _MOST_DIGITS:
        return text
    try:
        if bare.startswith(("0b", "0x", "0o")):
            found = int(bare[2:], {"b": 2, "x": 16, "o": 8}[bare[1]])
        elif len(bare) > 1 and bare[0] == "0" and not set(bare) - set("01234567"):
            found = int(bare, 8)
        else:
            found = int(bare)
    except ValueError:
        return text
    return -found if sign == "-" else found


def _line(error: yaml.MarkedYAMLError) -> str:
    """The library counts lines from 0 and leaves the first out; only its scanner's are counted from 1."""
    mark, context = error.problem_mark, error.context_mark
    line = mark.line if mark else 0
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    elif not line and context:
        line = context.line
    return f"line {line}: " if line else ""
