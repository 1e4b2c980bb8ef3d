"""YAML as a settings file may use it: one document of plain mappings, lists and scalars.

What would make two readers see different things is refused: keys that stand there twice, aliases, merge keys, tags,
keys that are not text. Not here: what the values mean (``load``).
"""

from __future__ import annotations

from collections.abc import Callable

import yaml

MOST_BYTES = 1024 * 1024
MOST_DEPTH = 16
MOST_VALUES = 5_000
"""Keys and values: each takes some microseconds in which nothing else is done."""
_LONGEST_NUMBER = 64

_MERGE = "tag:yaml.org,2002:merge"
_TEXT = "tag:yaml.org,2002:str"

Report = Callable[[str, str], None]
"""Takes the path of a key (empty: the file) and what is wrong there."""


class _Loader(yaml.CSafeLoader):
    """Takes long plain scalars as text: no number is that long, and finding out takes patterns and sums a long time."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode and value is not None and len(value) > _LONGEST_NUMBER:
            return _TEXT
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]  # of PyYAML


def read_yaml(raw: bytes, report: Report) -> object:
    """The document as dicts, lists and scalars (None when it is empty), reporting everything that is refused.

    Where something was reported the value is what could be made of the rest.
    """
    if len(raw) > MOST_BYTES:
        report("", f"the file is larger than {MOST_BYTES // 1024} KiB")
        return None
    try:
        text = raw.decode()
        if not _check_events(text, report):
            return None
        loader = _Loader(text)
        node = loader.get_single_node()
        return None if node is None else _value(loader, node, "", report)
    except UnicodeDecodeError as error:
        report("", f"the file is not UTF-8 (byte {error.start})")
    except yaml.MarkedYAMLError as error:
        report("", f"not YAML: {_where(error)}{error.problem or error.context}")
    except yaml.YAMLError as error:
        report("", f"not YAML: {' '.join(str(error).split())[:200]}")
    return None


def _check_events(text: str, report: Report) -> bool:
    """Look at the file's pieces before anything is built of them, so that aliases and depth cost nothing."""
    depth = values = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            report("", f"line {line}: anchors and aliases are refused; write the value out")
            return False
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            report("", f"line {line}: tags such as {event.tag} are refused; write the plain value")
            return False
        values += isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if values > MOST_VALUES:
            report("", f"line {line}: more than {MOST_VALUES} keys and values")
            return False
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            report("", f"line {line}: nested deeper than {MOST_DEPTH} levels")
            return False
    return True


def _value(loader: yaml.CSafeLoader, node: yaml.Node, path: str, report: Report) -> object:
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, report)
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item, f"{path}[{index}]", report) for index, item in enumerate(node.value)]
    try:
        return loader.construct_object(node)
    except (ValueError, OverflowError):  # 0x or a date that exists in no calendar
        return node.value


def _mapping(loader: yaml.CSafeLoader, node: yaml.MappingNode, path: str, report: Report) -> dict[str, object]:
    found: dict[str, object] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if key_node.tag == _MERGE:
            report(path, f"line {line}: merge keys are refused; write the keys out")
            continue
        key = _value(loader, key_node, path, report)
        if not isinstance(key, str):
            report(path, f"line {line}: a key must be text; put it in quotes")
            continue
        below = f"{path}.{key}" if path else key
        if key in found:
            report(below, f"line {line}: the key stands there twice; remove one")
            continue
        found[key] = _value(loader, value_node, below, report)
    return found


def _where(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
