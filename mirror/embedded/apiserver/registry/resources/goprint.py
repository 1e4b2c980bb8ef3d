"""Values of every built-in kind as causes print them (E5): ``batch.printing`` with all structs."""

from __future__ import annotations

from typing import Any

from mirror.batch import printing
from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS


def go_json(value: Any, kind: str) -> str:
    """A canonical value of this type (as ``batch.schema`` writes types)."""
    return printing.text(value, kind, STRUCTS)
