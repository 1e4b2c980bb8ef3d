"""``bindings``: the old way to bind a pod to a node. Nothing is stored; ``actions.binding`` does it."""

from __future__ import annotations

from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.resources.base import Builtin


class Bindings(Builtin):
    """Only its fields matter."""

    struct = "Binding"


def kind() -> Kind:
    """``v1`` ``bindings``."""
    return Kind("", "v1", "Binding", "bindings", Bindings(), singular="binding", verbs=("create",))
