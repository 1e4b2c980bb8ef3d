"""Differences from a real API server that are meant: what they look like, and why. As short as it can be.

Each is told to users in ``docs/embedded.md``. A run passes over what is here, and over nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Explained:
    """One sort of difference. ``line`` matches the whole of each of its lines, ``ask`` the request."""

    because: str
    ask: re.Pattern[str]
    line: re.Pattern[str]


EXPLAINED: tuple[Explained, ...] = (
    Explained(
        "a real server stores empty labels, owners and finalizers that were applied to a custom object, serves it "
        "without them, and drops them at the next write, which therefore changes something; ours never stores them",
        re.compile(r"(PATCH|PUT) \S*/things/\S+"),
        re.compile(r"\.body\.metadata\.resourceVersion: .*"),
    ),
)


def is_explained(ask: str, lines: tuple[str, ...]) -> bool:
    """Whether every line of a difference is as one entry says."""
    return any(one.ask.fullmatch(ask) and all(one.line.fullmatch(line) for line in lines) for one in EXPLAINED)
