"""What the API refuses in a podFailurePolicy and in a successPolicy (P1–P14, SP2–SP6, RN3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mirror.batch import indexes, rule_names
from mirror.batch.quoting import json_text, quoted
from mirror.batch.syntax import qualified_name_problems, size
from mirror.batch.violations import (
    Violation,
    duplicate,
    invalid,
    invalid_text,
    invalid_texts,
    invalid_whole,
    not_negative,
    not_supported,
    required,
    too_long,
    too_many,
)
from mirror.embedded.apiserver.apimachinery.errors import Json

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MOST_RULES = _MOST_PATTERNS = 20
_MOST_VALUES = 255
_LONGEST_INDEXES = 64 * 1024


def check_pod_failure_policy(spec: Json) -> Iterator[Violation]:
    """P1–P14; names of rules are checked by ``check_rule_names``."""
    rules, field = spec["podFailurePolicy"]["rules"] or (), "spec.podFailurePolicy.rules"
    if len(rules) > _MOST_RULES:
        yield too_many(field, len(rules), _MOST_RULES)
    pod = spec["template"]["spec"]
    containers = {one["name"] for kind in ("containers", "initContainers") for one in pod.get(kind) or ()}
    for position, rule in enumerate(rules):
        yield from _check_action(f"{field}[{position}].action", rule["action"], spec)
        yield from _check_rule(f"{field}[{position}]", rule, containers)


def check_rule_names(policy: Json) -> Iterator[Violation]:
    """RN3, RN5; what is wrong with a name is the knowledge of ``rule_names``."""
    given = [rule.get("name") for rule in policy.get("rules") or ()]
    for problem in rule_names.check(given):
        field, name = f"spec.podFailurePolicy.rules[{problem.index}].name", given[problem.index] or ""
        match problem.kind:
            case "Duplicate":
                yield duplicate(field, quoted(name))
            case "TooLong":
                yield too_long(field, rule_names.LONGEST_REASON - len(rule_names.PREFIX))
            case "Invalid":
                yield invalid_text(field, name, problem.what)


def check_success_policy(policy: Json, completions: int | None) -> Iterator[Violation]:
    """SP2–SP6. Where completions are missing, C18 says so and nothing is counted against them (C32)."""
    rules, field = policy["rules"] or (), "spec.successPolicy.rules"
    if not rules:
        yield required(field, "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > _MOST_RULES:
        yield too_many(field, len(rules), _MOST_RULES)
    for position, rule in enumerate(rules):
        yield from _check_success_rule(f"{field}[{position}]", rule, completions)


def _check_action(field: str, action: str, spec: Mapping[str, object]) -> Iterator[Violation]:
    """P2, P3, P4."""
    if not action:
        yield required(field, 'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]')
    elif action not in _ACTIONS:
        yield not_supported(field, action, _ACTIONS)
    elif action == "FailIndex" and "backoffLimitPerIndex" not in spec:
        yield invalid(field, json_text(action), "requires the backoffLimitPerIndex to be set")


def _check_rule(field: str, rule: Json, containers: set[str]) -> Iterator[Violation]:
    """P5, P6, and what is in either part."""
    exit_codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions", ())
    if exit_codes is not None:
        yield from _check_exit_codes(f"{field}.onExitCodes", exit_codes, containers)
    yield from _check_patterns(f"{field}.onPodConditions", patterns)
    if exit_codes is not None and patterns:
        yield invalid_whole(field, "specifying both OnExitCodes and OnPodConditions is not supported")
    if exit_codes is None and not patterns:
        yield invalid_whole(field, "specifying one of OnExitCodes and OnPodConditions is required")


def _check_exit_codes(field: str, requirement: Json, containers: set[str]) -> Iterator[Violation]:
    """P7–P11."""
    operator, container = requirement["operator"], requirement.get("containerName")
    if not operator:
        yield required(f"{field}.operator", 'valid values: ["In" "NotIn"]')
    elif operator not in _OPERATORS:
        yield not_supported(f"{field}.operator", operator, _OPERATORS)
    if container is not None and container not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid_text(f"{field}.containerName", container, detail)
    yield from _check_values(f"{field}.values", requirement["values"], operator)


def _check_values(field: str, values: list[int] | None, operator: str) -> Iterator[Violation]:
    """P9, P10, P11."""
    listed = values or []
    if not listed:
        yield invalid(field, "null" if values is None else "[]", "at least one value is required")
    elif len(listed) > _MOST_VALUES:
        yield too_many(field, len(listed), _MOST_VALUES)
    seen: set[int] = set()
    for position, value in enumerate(listed):
        if operator == "In" and value == 0:
            yield invalid(f"{field}[{position}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield duplicate(f"{field}[{position}]", value)
        seen.add(value)
    if listed != sorted(listed):
        yield invalid(field, f"[{','.join(map(str, listed))}]", "must be ordered")


def _check_patterns(field: str, patterns: Sequence[Json]) -> Iterator[Violation]:
    """P12, P13, P14; defaults leave no status empty."""
    if len(patterns) > _MOST_PATTERNS:
        yield too_many(field, len(patterns), _MOST_PATTERNS)
    for position, pattern in enumerate(patterns):
        yield from invalid_texts(f"{field}[{position}].type", pattern["type"], qualified_name_problems(pattern["type"]))
        if pattern["status"] not in _STATUSES:
            yield not_supported(f"{field}[{position}].status", pattern["status"], _STATUSES)


def _check_success_rule(field: str, rule: Json, completions: int | None) -> Iterator[Violation]:
    """SP3–SP6."""
    listed, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if listed is None and count is None:
        yield required(field, "at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if listed is not None:
        if size(listed) > _LONGEST_INDEXES:
            yield too_long(f"{field}.succeededIndexes", _LONGEST_INDEXES)
        try:
            total = indexes.count(indexes.parse(listed, completions)) if completions is not None else 0
        except indexes.BadIndexes as problem:
            detail = f"error parsing succeededIndexes: {problem}"
            yield invalid_text(f"{field}.succeededIndexes", listed, detail)
    yield from not_negative(f"{field}.succeededCount", count)
    if count is None or completions is None:
        return
    most = f"must be less than or equal to {completions} (the number of specified completions)"
    if count > completions:
        yield invalid(f"{field}.succeededCount", count, most)
    if listed is not None and count > total:
        most = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        yield invalid(f"{field}.succeededCount", count, most)
