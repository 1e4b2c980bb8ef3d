"""Asks the rules of a definition about an object. Pure; the words, the order and the limits are kube-apiserver's."""

from __future__ import annotations

from collections.abc import Mapping
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
from mirror.embedded.apiserver.crds.rule_values import Values
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


def ask(rules: Part, new: Mapping[str, Any], old: Mapping[str, Any] | None, found: list[Violation]) -> Outcome:
    """What the rules say, unless the schema has ``found`` what makes them pointless."""
    if any(one.reason in _BLOCKING for one in found):
        words = "some validation rules were not checked because the object was invalid; "
        words += "correct the existing errors to complete validation"
        return Outcome([invalid("<nil>", "null", words)])
    asking = _Asking()
    relation = _Relation(old is not None, old, None if old is None else old == new)
    with suppress(_Stopped):
        asking.walk(rules, new, relation, "")
    return asking.outcome


class _Stopped(Exception):
    """No further rule is asked."""


class _Relation(NamedTuple):
    """What a value was before."""

    is_known: bool
    """Whether a value before belongs to this one: rules on transitions are asked."""
    old: Any
    is_same: bool | None
    """Whether it, or the nearest value around it that can be compared, has not changed; None: nothing can be."""

    def below(self, name: str, value: Any, *, is_top: bool) -> _Relation:
        """Of a member of an object or a map."""
        if is_top and name in ("apiVersion", "kind"):
            return _Relation(False, None, False)
        if not isinstance(self.old, dict) or self.old.get(name) is None:
            return _Relation(False, None, self.is_same)
        old = self.old[name]
        return _Relation(True, old, old == value and type(old) is type(value))

    def of_item(self, old: Any, value: Any) -> _Relation:
        """Of an item of a list; those that nothing tells apart are as the whole list is."""
        if old is None:
            return _Relation(False, None, self.is_same)
        return _Relation(True, old, old == value)


class _Asking:
    def __init__(self) -> None:
        self.outcome = Outcome()
        self._left = _BUDGET
        self._values, self._old_values = Values(), Values()
        self._end = thread_time() + _LONGEST_SECONDS

    def walk(self, part: Part, value: Any, relation: _Relation, path: str) -> None:
        """The rules of a value, then those of what is in it. Raises: _Stopped."""
        if value is None:
            return
        self._ask(part, value, relation, path)
        if isinstance(value, list) and part.items is not None:
            before = _by_keys(part, relation.old) if isinstance(relation.old, list) else {}
            for position, item in enumerate(value):
                old = before.get(_key(part, item)) if before else None
                self.walk(part.items, item, relation.of_item(old, item), f"{path}[{position}]")
        elif isinstance(value, dict):
            if part.additional is not None:
                for name, item in value.items():
                    below = relation.below(name, item, is_top=False)
                    self.walk(part.additional, item, below, f"{path}[{name}]")
            for name, inner in part.properties.items():
                if name in value:
                    below = relation.below(name, value[name], is_top=not path)
                    self.walk(inner, value[name], below, f"{path}.{name}" if path else name)

    def _ask(self, part: Part, value: Any, relation: _Relation, path: str) -> None:
        if not part.rules:
            return
        place, kind = path or "<nil>", f'"{part.schema.get("type", "")}"'
        if self._left <= 0 or thread_time() > self._end:
            self._stop(invalid(place, kind, _OUT_OF_BUDGET))
        seen = self._values.of(value, part.schema, is_root=part.is_root)
        before: Any = None
        if relation.is_known and any(rule.is_transition for rule in part.rules):
            before = self._old_values.of(relation.old, part.schema, is_root=part.is_root)
        for rule in part.rules:
            if rule.is_transition and not relation.is_known and not rule.takes_optional:
                continue
            variables = {"self": seen}
            if rule.takes_optional:
                variables["oldSelf"] = Optional(True, before) if relation.is_known else NONE
            elif rule.is_transition:
                variables["oldSelf"] = before
            self._ask_one(rule, variables, relation, (place, kind, value))

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


def _by_keys(part: Part, items: list[Any]) -> Mapping[Any, Any]:
    """Items before, by what tells them apart; none where nothing does."""
    if part.schema.get("x-kubernetes-list-type") != "map":
        return {}
    return {_key(part, one): one for one in items}


def _key(part: Part, item: Any) -> Any:
    keys = part.schema.get("x-kubernetes-list-map-keys") or ()
    return tuple(repr(item.get(name)) for name in keys) if isinstance(item, dict) else None
