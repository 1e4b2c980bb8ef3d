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
    Explained(
        "a Job without labels gets those of its pods when it is read, which a real server stores at the next write",
        re.compile(r"(PATCH|PUT) jobs/\S+"),
        re.compile(r"\.body\.metadata\.resourceVersion: .*"),
    ),
    Explained(
        "some requests crash their handler in a real server, which ends the connection; ours answers them",
        re.compile(r"(PATCH|POST) \S+"),
        re.compile(r"status: 0 but ours .*", re.DOTALL),
    ),
    Explained(
        "an immutable Secret without data, or ConfigMap without binaryData, refuses an empty map in a real server, "
        "for which that is something else than none once it is in memory; ours knows no empty maps",
        re.compile(r"(PATCH|PUT) (secrets|configmaps)/\S+"),
        re.compile(
            r"status: 422 but ours 200: .*ata: Forbidden: field is immutable when `immutable` is set but .*"
            r"|cause: only theirs: \('(binaryD|d)ata', 'FieldValueForbidden', .*field is immutable when `immutable` .*"
        ),
    ),
    Explained(
        "labels of a Job's pods that are an empty map are nobody's in a real server; ours keeps that they were given, "
        "since a Job without labels then gets those that are generated for its pods",
        re.compile(r"(POST|PATCH|PUT) jobs\S*"),
        re.compile(r"\S+\.f:spec\.f:template\.f:metadata: unexpected \{\"f:labels\": \{\}\}"),
    ),
    Explained(
        "bytes that are null count as changed at the next write in a real server, for the same reason",
        re.compile(r"(PATCH|PUT) (secrets|configmaps)/\S+"),
        re.compile(r"\.body\.metadata\.resourceVersion: .*"),
    ),
    Explained(
        "an empty list of webhooks, where there was none, counts as a change in a real server, since storage keeps "
        "no empty lists and memory does; ours knows none",
        re.compile(r"(PATCH|PUT) \w+webhookconfigurations/\S+"),
        re.compile(r"\.body\.metadata\.(generation|resourceVersion): .*"),
    ),
    Explained(
        "the same of an empty map in the difference that a refused change of a pod shows",
        re.compile(r"(PATCH|PUT) pods/\S+"),
        re.compile(r"cause: only (theirs: .*pod updates may not change fields.*: \{\}.*|ours: .*)", re.DOTALL),
    ),
)


def is_explained(ask: str, lines: tuple[str, ...]) -> bool:
    """Whether every line of a difference is as one entry says."""
    return any(one.ask.fullmatch(ask) and all(one.line.fullmatch(line) for line in lines) for one in EXPLAINED)
