"""What must be true of settings about mirrors that ``rules`` has no words for: labels of nodes, as KEY=VALUE."""

from __future__ import annotations

from collections.abc import Mapping

from mirror.settings.rule import Rule, Unexpected, Wrong
from mirror.settings.rules import LABELS

NodeLabel = tuple[str, str]
"""A key and its value."""


def node_label(text: str) -> NodeLabel:
    """Of ``KEY=VALUE``.

    Raises:
        Wrong: it is none.
    """
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise Wrong(("", "expected KEY=VALUE"))
    LABELS.apply({key: value})
    return key, value


def pairs_of(found: Mapping[str, str]) -> tuple[tuple[NodeLabel, NodeLabel], ...]:
    """A mapping that obeys ``NODE_SELECTORS``, read."""
    return tuple((node_label(here), node_label(there)) for here, there in found.items())


def _node_selectors(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Unexpected
    problems: list[tuple[str, str]] = []
    for here, there in value.items():
        for text in (here, there):
            try:
                node_label(text if isinstance(text, str) else "")
            except Wrong as wrong:
                problems += [(f".{here}", f"{what}, in {str(text)[:80]!r}") for _, what in wrong.problems]
    if problems:
        raise Wrong(*problems)
    return dict(value)


NODE_SELECTORS = Rule(
    "a mapping of labels of nodes, such as example.com/flavor=spot: tier=preemptible", _node_selectors
)
