"""Statuses of a kind by chance: such as its definition takes, and such as only a hostile worker has."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from mirror.model import names

Json = Any

TIMES = ("2026-03-01T12:00:00Z", "2026-03-01T12:00:05.25+02:00", "1970-01-01T00:00:00Z")
WORDS = (
    "",
    "a",
    "Running",
    "Succeeded",
    "Failed",
    "Complete",
    "Completed",
    "Suspended",
    "True",
    "False",
    "Unknown",
    "x y",
)
HOSTILE: tuple[Json, ...] = (
    None,
    True,
    -1,
    2**31,
    2**63,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x" * 5000,
    "\x00\u202e\x1b[2J",
    "yesterday",
    "0001-01-01T00:00:00Z",
    [],
    {},
    [None],
    [[[]]],
    {"": ""},
    {"a": {"b": {"c": [1, {"d": None}]}}},
    [{"type": "Failed", "status": "True"}] * 3,
)
_MOST_DEPTH = 6


def some_status(random: Random, schema: Mapping[str, Json], *, largest: int) -> Json:
    """Most are mappings with some of the fields of the schema, and some of these with a few values changed.

    A few are about as large as the largest that is copied, in bytes.
    """
    if random.random() < 0.02:
        return random.choice(HOSTILE)
    status = _valid(random, schema, 0)
    for _ in range(random.choice((0, 0, 1, 2, 8))):
        status = _spoiled(random, status, 0)
    if isinstance(status, dict) and random.random() < 0.15:
        status = {**status, **_end(random)}
    if isinstance(status, dict) and random.random() < 0.005:
        status = _large(random, status, largest)
    return status


def _large(random: Random, status: Json, size: int) -> Json:
    """With long texts in place of some of its own, outside of conditions, which are bounded one by one."""
    fields = [key for key, value in status.items() if key != "conditions" and isinstance(value, str | list | dict)]
    count = random.choice((1, 1, 2, 3))
    for key in random.sample(fields, min(count, len(fields))):
        status = {**status, key: _stretched(random, status[key], size // count - random.randrange(512))}
    return status


def _stretched(random: Random, value: Json, length: int) -> Json:
    if isinstance(value, dict) and value:
        key = random.choice(list(value))
        return {**value, key: _stretched(random, value[key], length)}
    if isinstance(value, list) and value:
        return [_stretched(random, value[0], length), *value[1:]]
    return "x" * length if isinstance(value, str) and value not in TIMES else value


def _end(random: Random) -> Json:
    """What many kinds say when they are over."""
    final = random.choice(("Completed", "Complete", "Succeeded", "Failed"))
    condition = {"type": final, "status": "True", "reason": "Because", "message": "", "lastTransitionTime": TIMES[0]}
    phases = {
        "phase": random.choice(("Succeeded", "Failed")),
        "jobDeploymentStatus": random.choice(("Complete", "Failed")),
    }
    return {"conditions": [condition]} if random.random() < 0.5 else phases


def _valid(random: Random, schema: Mapping[str, Json], depth: int) -> Json:
    if "enum" in schema:
        return random.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return random.choice((1, "2", "3Gi"))
    match schema.get("type"):
        case "object":
            return _mapping(random, schema, depth)
        case "array":
            count = random.choice((0, 1, 1, 2, 5, 12))
            return [_valid(random, schema.get("items", {}), depth + 1) for _ in range(count)]
        case "integer":
            return random.choice((0, 1, 2, 7, 1024, 2**31 - 1))
        case "number":
            return random.choice((0, 1, 0.5))
        case "boolean":
            return random.random() < 0.5
        case "string" if schema.get("format") == "date-time":
            return random.choice(TIMES)
        case "string":
            return random.choice(WORDS)
    return random.choice(HOSTILE)


def _mapping(random: Random, schema: Mapping[str, Json], depth: int) -> Json:
    known = schema.get("properties") or {}
    required = schema.get("required") or ()
    likely = 0.5 if depth < _MOST_DEPTH else 0.0
    found = {
        key: _valid(random, one, depth + 1) for key, one in known.items() if key in required or random.random() < likely
    }
    others = schema.get("additionalProperties")
    if isinstance(others, dict) and others:
        found |= {key: _valid(random, others, depth + 1) for key in random.sample(("a", "b", "Worker", "Master"), 2)}
    elif schema.get("x-kubernetes-preserve-unknown-fields"):
        found |= {"anything": random.choice(HOSTILE), "else": {"a": [1, "b"]}}
    return found


def _spoiled(random: Random, value: Json, depth: int) -> Json:
    """With one value somewhere in it changed, taken away or doubled."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(list(value))
        chance = random.random()
        if chance < 0.15:
            return {name: one for name, one in value.items() if name != key}
        if chance < 0.25:
            return {**value, random.choice(("unknown", "", "a.b/c", "Ünï", names.PLACED)): random.choice(HOSTILE)}
        return {**value, key: _spoiled(random, value[key], depth + 1)}
    if isinstance(value, list) and value and random.random() < 0.8:
        at = random.randrange(len(value))
        chance = random.random()
        if chance < 0.2:
            return [*value, value[at]]
        if chance < 0.3:
            return value * 40
        return [*value[:at], _spoiled(random, value[at], depth + 1), *value[at + 1 :]]
    return random.choice(HOSTILE)
