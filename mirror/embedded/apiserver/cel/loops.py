"""How much longer an expression takes for larger values, judged before it runs. Pure."""

from __future__ import annotations

from mirror.embedded.apiserver.cel.checker import Checked
from mirror.embedded.apiserver.cel.macros import RESULT
from mirror.embedded.apiserver.cel.tree import Call, Fold, Name, Node, children

_QUICK = frozenset(("size", "value", "orValue", "hasValue", "or", "optional.of", "type"))
"""Functions that take no longer for larger values."""


def depth_of(checked: Checked) -> int:
    """How many loops are in each other; a call that reads a whole value is one."""
    return _depth(checked.tree, checked)


def _depth(node: Node, checked: Checked) -> int:
    if isinstance(node, Fold):
        outside = max(_depth(node.over, checked), _depth(node.start, checked))
        return max(outside, 1 + max(_depth(one, checked) for one in (node.condition, node.step, node.result)))
    inner = max((_depth(one, checked) for one in children(node)), default=0)
    if isinstance(node, Call) and id(node) in checked.resolved:
        if _is_growing(node):
            return inner
        resolved = checked.resolved[id(node)]
        return inner + (1 if resolved.reads_whole and node.function not in _QUICK else 0)
    return inner


def _is_growing(node: Call) -> bool:
    """Whether it is the list that a loop builds, one item more."""
    return node.function == "_+_" and isinstance(node.arguments[0], Name) and node.arguments[0].name == RESULT
