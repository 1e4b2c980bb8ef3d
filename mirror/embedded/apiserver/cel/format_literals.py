"""Whether the clauses of a literal text that is formatted suit its literal arguments. Pure; the words are cel-go's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from mirror.embedded.apiserver.cel import types
from mirror.embedded.apiserver.cel.functions.formatting import CLAUSE, KINDS_TOLD
from mirror.embedded.apiserver.cel.tree import ListOf, MapOf, Node
from mirror.embedded.apiserver.cel.types import Type

_SIMPLE = frozenset(("int", "uint", "double", "bool", "string", "bytes"))
_SHOWN = _SIMPLE | {"list", "map", "type", "null_type", types.TIMESTAMP.name, types.DURATION.name}
_WHOLE, _FLOATING = frozenset(("int", "uint")), frozenset(("double", "string"))
_TYPES: Mapping[str, frozenset[str]] = {
    "s": _SHOWN,
    "d": _WHOLE,
    "f": _FLOATING,
    "e": _FLOATING,
    "b": _WHOLE | {"bool"},
    "x": _WHOLE | {"string", "bytes"},
    "X": _WHOLE | {"string", "bytes"},
    "o": _WHOLE,
}


def complain(text: str, arguments: ListOf, at: int, type_of: Callable[[Node], Type]) -> tuple[int, str] | None:
    """What is wrong, and where; None if nothing is.

    Args:
        text: what is formatted.
        arguments: what comes in place of its clauses.
        at: where the call is.
        type_of: the type of a part of the arguments.
    """
    left = list(arguments.items)
    count = 0
    for clause in CLAUSE.finditer(text):
        if clause.group() == "%%":
            continue
        verb = clause.group(2)
        if not verb:
            return at, "unexpected end of string"
        if count >= len(left):
            return at, f"index {count} out of range"
        if verb not in _TYPES:
            return at, f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
        for part in _parts(left[count]) if verb == "s" else (left[count],):
            found = type_of(part)
            if not types.is_dyn(found) and found.name not in _TYPES[verb]:
                return part.at, f"error during formatting: {KINDS_TOLD[verb]}, was given {found.name}"
        count += 1
    if count < len(left):
        return at, f"too many arguments supplied to string.format (expected {count}, got {len(left)})"
    return None


def _parts(node: Node) -> Iterator[Node]:
    """The node, and what is in a literal list or map."""
    yield node
    inner: Sequence[Node] = ()
    if isinstance(node, ListOf):
        inner = node.items
    elif isinstance(node, MapOf):
        inner = [one for key, value, _ in node.entries for one in (key, value)]
    for one in inner:
        yield from _parts(one)
