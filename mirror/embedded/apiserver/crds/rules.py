"""Rules of definitions (``x-kubernetes-validations``): read once, asked about each write. Pure.

As kube-apiserver's validator of custom resources: what a rule costs is counted, what has not changed only warns, and a
rule that speaks of the value before is asked only where there is one. Definitions are checked in ``rule_checks``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mirror.batch.violations import DUPLICATE, FORBIDDEN, INVALID, REQUIRED
from mirror.embedded.apiserver.cel import checker, parsing, types
from mirror.embedded.apiserver.cel.evaluating import Program
from mirror.embedded.apiserver.cel.loops import depth_of
from mirror.embedded.apiserver.cel.times import EvaluationError
from mirror.embedded.apiserver.cel.tree import BadExpression
from mirror.embedded.apiserver.cel.types import Type
from mirror.embedded.apiserver.crds.rule_paths import field_path
from mirror.embedded.apiserver.crds.rule_values import Types
from mirror.embedded.apiserver.crds.values import Schema

WORD = "x-kubernetes-validations"
_REASONS = {name: name for name in (REQUIRED, FORBIDDEN, DUPLICATE)}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, ready to be asked."""

    said: Mapping[str, Any]
    program: Program
    message: Program | None
    path: str
    """Of the field that it is about, below the value; empty for the value itself."""
    depth: int
    """How many loops are in each other: one more means that much longer for large values."""

    @property
    def is_transition(self) -> bool:
        """Whether it speaks of the value before."""
        return "oldSelf" in self.program.names

    @property
    def takes_optional(self) -> bool:
        """Whether the value before may be missing."""
        return bool(self.said.get("optionalOldSelf"))

    @property
    def words(self) -> str:
        """What it is called in errors."""
        return str(self.said.get("message") or self.said["rule"]).strip()

    @property
    def detail(self) -> str:
        """What a refusal says."""
        message = str(self.said.get("message") or "")
        return message.strip() if message else f"failed rule: {self.words}"

    @property
    def reason(self) -> str:
        return _REASONS.get(self.said.get("reason") or "", INVALID)


@dataclass(slots=True)
class Part:
    """The rules of a part of a schema and of what is below; parts without any are not there."""

    schema: Schema
    is_root: bool
    rules: tuple[Rule, ...] = ()
    faults: tuple[str, ...] = ()
    """Why others cannot be evaluated."""
    items: Part | None = None
    additional: Part | None = None
    properties: dict[str, Part] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """How many loops are in each other at most, those over items included."""
        below = [one.depth for one in self.properties.values()]
        below += [1 + one.depth for one in (self.items, self.additional) if one is not None]
        return max([rule.depth for rule in self.rules] + below, default=0)


class NotARule(Exception):
    """A rule, or its message, that cannot be evaluated."""

    def __init__(self, words: str, name: str = "rule") -> None:
        super().__init__(words)
        self.name = name
        self.looks_back = False
        """Whether the rule, as far as it is understood, speaks of the value before."""


def compiled(said: Mapping[str, Any], type_: Type, schema: Schema) -> Rule:
    """A rule, ready to be asked about values of a type.

    Raises:
        NotARule: it cannot be.
    """
    before = types.optional_of(type_) if said.get("optionalOldSelf") else type_
    variables = {"self": type_, "oldSelf": before}
    rule = _checked(said["rule"], variables, "rule", types.BOOL)
    message: Program | None = None
    try:
        program = _program(rule, "rule")
        if said.get("messageExpression"):
            checked = _checked(said["messageExpression"], variables, "messageExpression", types.STRING)
            message = _program(checked, "messageExpression")
    except NotARule as error:
        error.looks_back = "oldSelf" in rule.names
        raise
    path = field_path(said["fieldPath"], schema) if said.get("fieldPath") else ""
    return Rule(said, program, message, path or "", depth_of(rule))


def _program(checked: checker.Checked, name: str) -> Program:
    try:
        return Program(checked)
    except EvaluationError as error:
        raise NotARule(f"{'program' if name == 'rule' else name} instantiation failed: {error}", name) from None


def _checked(text: str, variables: Mapping[str, Type], name: str, wanted: Type) -> checker.Checked:
    is_rule = name == "rule"
    try:
        found = checker.check(text, parsing.parse(text), variables)
    except BadExpression as error:
        raise NotARule(f"{'' if is_rule else 'messageExpression '}compilation failed: {error}", name) from None
    if found.result != wanted:
        article = "cel expression must evaluate to a bool" if is_rule else "messageExpression must evaluate to a string"
        raise NotARule(article, name)
    return found


def read(schema: Schema, *, is_root: bool = True) -> Part | None:
    """All rules of a schema, and the faults of those that cannot be evaluated, which are refused with a definition."""
    return _part(schema, Types(), is_root=is_root)


def count(schema: object) -> int:
    """How many rules are in it."""
    if not isinstance(schema, Mapping):
        return 0
    inner = [schema.get("items"), schema.get("additionalProperties"), *(schema.get("properties") or {}).values()]
    return len(schema.get(WORD) or ()) + sum(map(count, inner))


def _part(schema: Schema, known: Types, *, is_root: bool = False) -> Part | None:
    found = Part(schema, is_root)
    type_ = known.of(schema, is_root=is_root)
    if type_ is not None:
        found.rules, found.faults = _readable(schema, type_)
    if isinstance(schema.get("items"), Mapping):
        found.items = _part(schema["items"], known)
    if isinstance(schema.get("additionalProperties"), Mapping):
        found.additional = _part(schema["additionalProperties"], known)
    for name, inner in (schema.get("properties") or {}).items():
        part = _part(inner, known)
        if part is not None:
            found.properties[name] = part
    has_any = found.rules or found.faults or found.items or found.additional or found.properties
    return found if has_any else None


def _readable(schema: Schema, type_: Type) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """The rules, without messages that cannot be evaluated, and why rules cannot be."""
    found, faults = [], []
    for said in schema.get(WORD) or ():
        if str(said.get("rule", "")).strip():
            try:
                found.append(_without_bad_message(said, type_, schema))
            except NotARule as error:
                faults.append(str(error))
    return tuple(found), tuple(faults)


def _without_bad_message(said: Mapping[str, Any], type_: Type, schema: Schema) -> Rule:
    try:
        return compiled(said, type_, schema)
    except NotARule as error:
        if error.name == "rule":
            raise
        return compiled({**said, "messageExpression": ""}, type_, schema)
