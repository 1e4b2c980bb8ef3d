"""Names of podFailurePolicy rules (KEP-4443, D17, RN1–RN5): where they come from, what they may be,
and the reason that follows from them.

A server that knows ``rules[].name`` stores it in the spec; a real one drops it, and an annotation carries the names.
Used by the Job controller, which gives the reason, by the mirror, which carries it, and by validation. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from mirror.batch import views
from mirror.model import names

PLAIN_REASON = "PodFailurePolicy"
PREFIX = PLAIN_REASON + "_"
LONGEST_REASON = 128
FIELD = ("batch/v1", "io.k8s.api.batch.v1.PodFailurePolicyRule", "name")
"""What a server that knows them says of it in its OpenAPI document: group and version, structure, field."""

_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_INDEX = re.compile(r"0|[1-9][0-9]{0,5}")
_RULE_IN_MESSAGE = re.compile(r"matching FailJob rule at index (0|[1-9][0-9]{0,5})$")

Kind: TypeAlias = Literal["Invalid", "Duplicate", "TooLong"]


class Problem(msgspec.Struct, frozen=True):
    """What is wrong with the name of one rule; ``kind`` is the reason of an API server's cause."""

    index: int
    kind: Kind
    what: str


class BadRuleNames(ValueError):
    """The annotation cannot be used; the text says why, in one line."""


def check(given: Sequence[str | None]) -> list[Problem]:
    """What RN3 has against the names of the rules, in their order; None is a rule without a name.

    That no reason may equal one of the controller's own needs no check: none of those begins like ours.
    """
    problems = []
    seen: set[str] = set()
    for index, name in enumerate(given):
        if name is None:
            continue
        if problem := _check_alone(index, name):
            problems.append(problem)
        elif name in seen:
            problems.append(Problem(index, "Duplicate", "another rule has this name"))
        elif _INDEX.fullmatch(name) and int(name) != index and int(name) < len(given):
            problems.append(Problem(index, "Invalid", "must not be the index of another rule"))
        seen.add(name)
    return problems


def names_of(spec: Mapping[str, object], annotations: Mapping[str, str]) -> dict[int, str] | None:
    """The names that were given, by rule; None for a Job that gives none and so gets no suffix.

    Names in the spec count, since its server has validated them; the annotation counts where there are none.

    Raises:
        BadRuleNames: the annotation is no such map, or breaks RN3.
    """
    rules = _rules(spec)
    in_spec = {index: name for index, rule in enumerate(rules) if (name := views.optional_text(rule.get("name")))}
    if in_spec:
        return in_spec
    text = annotations.get(names.RULE_NAMES)
    return None if text is None else _read(text, len(rules))


def as_text(given: Mapping[int, str]) -> str:
    """The annotation's text."""
    return msgspec.json.encode({str(index): name for index, name in sorted(given.items())}).decode()


def reason_of(given: Mapping[int, str] | None, message: str, *, server_knows_names: bool = False) -> str:
    """The reason of a Job that a FailJob rule fails, the rule being found by the end of the message (F4).

    Args:
        given: as of ``names_of``.
        message: of the condition FailureTarget.
        server_knows_names: Jobs without any name get a suffix, too: the index, as the KEP says (RN1).
    """
    if given is None and not server_knows_names:
        return PLAIN_REASON
    found = _RULE_IN_MESSAGE.search(message)
    return PREFIX + (given or {}).get(int(found[1]), found[1]) if found else PLAIN_REASON


def reason(
    spec: Mapping[str, object], annotations: Mapping[str, str], message: str, *, server_knows_names: bool = False
) -> str:
    """As ``reason_of``, for a Job as it is stored; an annotation that cannot be used is as none."""
    try:
        given = names_of(spec, annotations)
    except BadRuleNames:
        given = None
    return reason_of(given, message, server_knows_names=server_knows_names)


def _check_alone(index: int, name: str) -> Problem | None:
    if not name:
        return Problem(index, "Invalid", "must not be empty")
    if len(PREFIX + name) > LONGEST_REASON:
        return Problem(index, "TooLong", f"may not be more than {LONGEST_REASON - len(PREFIX)} characters")
    if not _REASON.fullmatch(PREFIX + name):
        return Problem(
            index, "Invalid", "must consist of letters, digits, '_', ',' and ':' and not end with ',' or ':'"
        )
    return None


def _rules(spec: Mapping[str, object]) -> list[Mapping[str, object]]:
    policy = views.mapping(spec.get("podFailurePolicy"))
    return [views.mapping(rule) for rule in views.items(policy.get("rules"))]


def _read(text: str, count: int) -> dict[int, str]:
    try:
        found = msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise BadRuleNames('is not a JSON object of texts such as {"0":"OutOfMemory"}') from None
    listed: list[str | None] = [None] * count
    for key, name in found.items():
        if not _INDEX.fullmatch(key):
            raise BadRuleNames("has a key that is not the index of a rule")
        if int(key) >= count:
            raise BadRuleNames(f"names rule {key}, which podFailurePolicy does not have")
        listed[int(key)] = name
    for problem in check(listed):
        raise BadRuleNames(f"the name of rule {problem.index} {_as_clause(problem)}")
    return {int(key): name for key, name in found.items()}


def _as_clause(problem: Problem) -> str:
    return "is that of another rule" if problem.kind == "Duplicate" else problem.what
