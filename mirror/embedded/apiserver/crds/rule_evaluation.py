"""Asks the rules of a definition about an object. Pure; the words, the order and the limits are kube-apiserver's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import thread_time
from typing import Any, NamedTuple

from mirror.batch.violations import (
    DUPLICATE,
    FORBIDDEN,
    REQUIRED,
    Violation,
    forbidden,
    invalid,
    invalid_whole,
    required,
)
from mirror.embedded.apiserver.cel.evaluating import CALL_LIMIT, Program
from mirror.embedded.apiserver.cel.functions.patterns import NotEvaluated
from mirror.embedded.apiserver.cel.metering import Meter
from mirror.embedded.apiserver.cel.times import NONE, CostExceeded, EvaluationError, Optional
from mirror.embedded.apiserver.cel.values import NO_OVERLOAD
from mirror.embedded.apiserver.crds import checking
from mirror.embedded.apiserver.crds.correlation import Correlated
from mirror.embedded.apiserver.crds.rule_values import Values, untyped
from mirror.embedded.apiserver.crds.rules import Part, Rule

_BUDGET = 10_000_000
"""Cost units for all rules of an object, as upstream."""
_LONGEST_SECONDS = 3.0
"""Of processor time for all rules of an object; upstream trusts in costs alone."""
_LONGEST_MESSAGE = 5 * 2**10
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_BLOCKING = ("FieldValueNotSupported", REQUIRED, "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid")


@dataclass(slots=True)
class Outcome:
    """What rules said of an object."""

    wrong: list[Violation] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What would be wrong, had it not been so before."""


def ask(
    rules: Part,
    new: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    correlated: Correlated | None,
    found: list[Violation],
) -> Outcome:
    """What the rules say, unless the schema has ``found`` what makes them pointless."""
    if any(one.reason in _BLOCKING for one in found):
        words = "some validation rules were not checked because the object was invalid; "
        words += "correct the existing errors to complete validation"
        return Outcome([invalid("<nil>", "null", words)])
    asking = _Asking()
    with suppress(_Stopped):
        asking.walk(rules, new, _Relation(old, correlated), "")
    return asking.outcome


def ask_about_defaults(defaults: Iterable[tuple[str, Part, Any]]) -> list[Violation]:
    """What the rules of their schemas, which are not checked yet, say of defaults: of what stays, and of what is new.

    Args:
        defaults: where each is, the rules of its schema, and the default.
    """
    asking = _Asking(tells_faults=True)
    with suppress(_Stopped):
        for path, rules, value in defaults:
            count = len(asking.outcome.wrong)
            asking.walk(rules, value, _Relation(value), path)
            if len(asking.outcome.wrong) == count:
                asking.walk(rules, value, _Relation(), path)
    return asking.outcome.wrong


class _Stopped(Exception):
    """No further rule is asked."""


class _Relation(NamedTuple):
    """What a value was before."""

    old: Any = None
    """None if no value before belongs to this one: rules on transitions are not asked."""
    own: Correlated | None = None
    around: Correlated | None = None
    """Of the nearest value around it that can be compared."""

    @property
    def is_same(self) -> bool:
        """Whether it, or else what is around it, has not changed."""
        compared = self.own or self.around
        return compared is not None and compared.is_same

    def below(self, name: str) -> _Relation:
        """Of a member of an object or a map."""
        old = self.old.get(name) if isinstance(self.old, dict) else None
        if self.own is None:
            return _Relation(old, None, self.around)
        if self.around is None and name in ("apiVersion", "kind"):
            return _Relation(old)
        return _Relation(old, self.own.key(name), self.own)

    def of_item(self, whole: Correlated, number: int) -> _Relation:
        """Of an item of the list that ``whole`` is."""
        own = None if self.own is None else whole.item(number)
        return _Relation(whole.old_item(number), own, self.own or self.around)


class _Asking:
    def __init__(self, *, tells_faults: bool = False) -> None:
        self.outcome = Outcome()
        self._tells_faults = tells_faults
        self._left = _BUDGET
        self._values, self._old_values = Values(), Values()
        self._end = thread_time() + _LONGEST_SECONDS

    def walk(self, part: Part, value: Any, relation: _Relation, path: str) -> None:
        """The rules of a value, then those of what is in it. Raises: _Stopped."""
        if value is None:
            return
        self._ask(part, value, relation, path)
        if isinstance(value, list) and part.items is not None:
            whole = relation.own or Correlated(value, relation.old, part.schema)
            for position, item in enumerate(value):
                self.walk(part.items, item, relation.of_item(whole, position), f"{path}[{position}]")
        elif isinstance(value, dict):
            if part.additional is not None:
                for name, item in value.items():
                    self.walk(part.additional, item, relation.below(name), f"{path}[{name}]")
            for name, inner in part.properties.items():
                if name in value:
                    self.walk(inner, value[name], relation.below(name), f"{path}.{name}" if path else name)

    def _ask(self, part: Part, value: Any, relation: _Relation, path: str) -> None:
        faults = part.faults if self._tells_faults else ()
        if not part.rules and not faults:
            return
        place, kind = path or "<nil>", f'"{part.schema.get("type", "")}"'
        if self._left <= 0 or thread_time() > self._end:
            self._stop(invalid(place, kind, _OUT_OF_BUDGET))
        self.outcome.wrong += [invalid(place, kind, f"rule compile error: {one}") for one in faults]
        variables = self._variables(part, value, relation)
        for rule in part.rules:
            if rule.is_transition and relation.old is None and not rule.takes_optional:
                continue
            self._ask_one(rule, variables[rule.takes_optional], relation, (place, kind, value))

    def _variables(self, part: Part, value: Any, relation: _Relation) -> Mapping[bool, Mapping[str, Any]]:
        """What rules see, by whether they take the value before as an optional; all know it if one of them does."""
        plain = {"self": self._values.of(value, part.schema, is_root=part.is_root)}
        if not any(rule.is_transition for rule in part.rules):
            return {False: plain, True: plain}
        if relation.old is None:
            return {False: plain, True: plain | {"oldSelf": NONE}}
        before = self._old_values.of(relation.old, part.schema, is_root=part.is_root)
        optional = Optional(True, untyped(relation.old, before))
        return {False: plain | {"oldSelf": before}, True: plain | {"oldSelf": optional}}

    def _stop(self, violation: Violation) -> None:
        self.outcome.wrong.append(violation)
        raise _Stopped

    def _run(self, program: Program, variables: Mapping[str, Any]) -> tuple[Any, Exception | None, int]:
        meter = Meter(CALL_LIMIT)
        try:
            return program.run(variables, meter), None, meter.cost
        except (EvaluationError, CostExceeded, NotEvaluated) as error:
            return None, error, meter.cost

    def _ask_one(
        self, rule: Rule, variables: Mapping[str, Any], relation: _Relation, about: tuple[str, str, Any]
    ) -> None:
        place, kind, value = about
        result, error, cost = self._run(rule.program, variables)
        if cost > self._left:
            self._stop(invalid(place, kind, _OUT_OF_BUDGET))
        self._left -= cost
        match error:
            case NotEvaluated():
                return
            case CostExceeded():
                why = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run "
                self._stop(invalid(place, kind, f"{why}due to call cost exceeds limit for rule: {rule.words}"))
            case EvaluationError():
                words = f"{error} evaluating rule: {rule.words}"
                if str(error).startswith(NO_OVERLOAD):
                    why = "call arguments did not match a supported operator, function or macro signature for rule"
                    words = f"'{error}': {why}: {rule.words}"
                self.outcome.wrong.append(invalid(place, kind, words))
                return
        if result is True:
            return
        at = place if not rule.path else rule.path if place == "<nil>" else f"{place}.{rule.path}"
        detail = self._detail(rule, variables, at, kind)
        violation = _violation(rule, at, value, detail)
        if not rule.is_transition and relation.is_same:
            self.outcome.warnings.append(f"{violation.field}: {violation.message}")
        else:
            self.outcome.wrong.append(violation)

    def _detail(self, rule: Rule, variables: Mapping[str, Any], at: str, kind: str) -> str:
        """What a refusal says, by an expression where there is one that works."""
        if rule.message is None:
            return rule.detail
        found, error, cost = self._run(rule.message, variables)
        if cost > self._left:
            words = "messageExpression evaluation failed due to running out of cost budget, "
            self._stop(invalid(at, kind, f"{words}no further validation rules will be run"))
        if isinstance(error, CostExceeded):
            text = checking.shown(str(rule.said["messageExpression"]))
            words = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
            self._stop(invalid(at, kind, f"{words}: {text}"))
        self._left -= cost
        text = str(found).strip() if error is None else ""
        if not text or "\n" in text or len(text.encode("utf-8", "surrogatepass")) > _LONGEST_MESSAGE:
            return rule.detail
        return text


def _violation(rule: Rule, at: str, value: Any, detail: str) -> Violation:
    match rule.reason:
        case x if x == FORBIDDEN:
            return forbidden(at, detail)
        case x if x == REQUIRED:
            return required(at, detail)
        case x if x == DUPLICATE:
            shown = "" if isinstance(value, dict | list) else f": {checking.shown(value)}"
            return Violation(at, DUPLICATE, f"Duplicate value{shown}")
    if isinstance(value, dict | list):
        return invalid_whole(at, detail)
    return invalid(at, checking.shown(value), detail)
