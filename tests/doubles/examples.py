"""How many examples a property gets: all of them by default and in ``make test``, a fifth in ``make check``.

The profiles are registered in ``tests/conftest``; ``--hypothesis-profile=quick`` chooses the one of ``make check``.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings

ALL, QUICK = 100, 20
"""``max_examples`` of the two profiles: of a property that asks for no number, and the measure of those that do."""


def examples(number: int, **more: Any) -> settings:
    """Settings with so many examples, or with their share in a quick run; and what else is to hold."""
    return settings(max_examples=max(1, number * settings().max_examples // ALL), **more)
