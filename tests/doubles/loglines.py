"""What our rooms log, for tests that ask."""

from __future__ import annotations

import logging
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import structlog

Lines: TypeAlias = list[dict[str, Any]]


@contextmanager
def captured(level: int = logging.INFO) -> Iterator[Lines]:
    """Collect lines from a level on instead of writing them: their fields, with ``event``, ``level`` and ``logger``."""
    lines: Lines = []

    def take(logger: Any, method: str, fields: MutableMapping[str, Any]) -> str:
        lines.append({"level": method, "logger": logger.name, **fields})
        raise structlog.DropEvent

    before = structlog.get_config()
    before["processors"].insert(0, take)
    structlog.configure(**(before | {"wrapper_class": structlog.make_filtering_bound_logger(level)}))
    try:
        yield lines
    finally:
        before["processors"].remove(take)
        structlog.configure(**before)
