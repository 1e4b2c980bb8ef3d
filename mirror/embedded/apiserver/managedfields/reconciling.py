"""What managers own after the schema of their kind has changed. Pure.

What was owned part by part and is one piece now is owned as that piece, as soon as somebody writes the object. The
other way round nothing changes: who owned the piece owns no part of it.
"""

from __future__ import annotations

from mirror.embedded.apiserver.managedfields.sets import LEAF, SELF, Items, Set, Shape, Struct, Whole


def reconciled(node: Set, shape: Struct) -> Set:
    """A manager's set as the schema of today has it; the same object if it fits."""
    found = {}
    for element, below in _members(node):
        known = shape.fields.get(element[2:]) if element[0] == "f" else None
        found[element] = _below(below, known or shape.other)
    return _changed(node, found)


def _below(node: Set, shape: Shape | None) -> Set:
    if not node:
        return node
    match shape:
        case Whole():
            return LEAF
        case Struct() if not shape.is_deduced:
            return reconciled(node, shape)
        case Items():
            return _changed(node, {element: _below(below, shape.item) for element, below in _members(node)})
    return node


def _members(node: Set) -> list[tuple[str, Set]]:
    return [(element, below) for element, below in node.items() if element != SELF]


def _changed(node: Set, members: Set) -> Set:
    if all(below is node[element] for element, below in members.items()):
        return node
    return {SELF: node[SELF], **members} if SELF in node else members
