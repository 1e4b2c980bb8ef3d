"""The functions that parts of expressions become. Pure; ``evaluating`` puts them together."""

from __future__ import annotations

from typing import Any

from mirror.embedded.apiserver.cel.checker import Resolved
from mirror.embedded.apiserver.cel.functions.declared import Overload
from mirror.embedded.apiserver.cel.members import item, optionally, shown
from mirror.embedded.apiserver.cel.metering import Meter, Step, Variables
from mirror.embedded.apiserver.cel.times import EvaluationError, Optional
from mirror.embedded.apiserver.cel.tree import Call, Constant, ListOf
from mirror.embedded.apiserver.cel.values import NO_OVERLOAD, key_of


class Failed:
    """An accumulator that has no value, which matters only if nothing later decides."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


def constant_step(value: Any) -> Step:
    """A value."""
    return lambda variables, meter: value


def variable(name: str) -> Step:
    """A variable, which costs one."""

    def read(variables: Variables, meter: Meter) -> Any:
        meter.cost += 1
        try:
            found = variables[name]
        except KeyError:
            raise EvaluationError(f"no such attribute(s): {name}") from None
        if type(found) is Failed:
            raise found.error
        return found

    return read


def junction(is_and: bool, terms: list[Step]) -> Step:
    """``&&`` or ``||``: what decides wins over what has no value."""
    deciding = not is_and

    def junction(variables: Variables, meter: Meter) -> bool:
        error: EvaluationError | None = None
        for term in terms:
            try:
                found = term(variables, meter)
            except EvaluationError as failed:
                error = error or failed
                continue
            if isinstance(found, bool):
                if found is deciding:
                    return deciding
            else:
                error = error or EvaluationError(NO_OVERLOAD)
        if error is not None:
            raise error
        return is_and

    return junction


def choice(condition: Step, true: Step, false: Step) -> Step:
    """One of two, by a condition."""

    def choose(variables: Variables, meter: Meter) -> Any:
        found = condition(variables, meter)
        if found is True:
            return true(variables, meter)
        if found is False:
            return false(variables, meter)
        raise EvaluationError(NO_OVERLOAD)

    return choose


def not_strictly_false(argument: Step) -> Step:
    """Whether a loop goes on."""

    def judge(variables: Variables, meter: Meter) -> bool:
        try:
            found = argument(variables, meter)
        except EvaluationError:
            found = True
        meter.cost += 1
        return found is not False

    return judge


def append(result: Step, items: Step) -> Step:
    """The list that a loop builds is nobody else's: it grows in place."""

    def append(variables: Variables, meter: Meter) -> Any:
        found = result(variables, meter)
        found.extend(items(variables, meter))
        meter.cost += 1
        return found

    return append


def insert(arguments: list[Step]) -> Step:
    """The map that a loop builds, with an entry more."""

    def insert(variables: Variables, meter: Meter) -> Any:
        found, *rest = [one(variables, meter) for one in arguments]
        for key, value in rest[0].items() if len(rest) == 1 else (tuple(rest),):
            if key in found:
                raise EvaluationError(f"insert failed: key {shown(key)} already exists")
            found[key] = value
        meter.cost += 1
        return found

    return insert


def of_constants(node: Call, one: Step) -> Step | None:
    """Whether a value is among constants is looked up, and costs nothing, as in cel-go."""
    items = node.arguments[1]
    if not isinstance(items, ListOf) or not items.items or items.optional:
        return None
    if not all(isinstance(item, Constant) for item in items.items):
        return None
    known = {key_of(item.value) for item in items.items if isinstance(item, Constant)}
    return lambda variables, meter: key_of(one(variables, meter)) in known


def alternative(optional: Step, other: Step, *, is_value: bool) -> Step:
    """The value of an optional, or what is there instead, which is looked at only then; it costs nothing itself."""

    def choose(variables: Variables, meter: Meter) -> Any:
        found = optional(variables, meter)
        if not isinstance(found, Optional):
            raise EvaluationError(NO_OVERLOAD)
        if not found.has_value:
            return other(variables, meter)
        return found.value if is_value else found

    return choose


def evaluated(arguments: list[Step], variables: Variables, meter: Meter) -> list[Any]:
    """All arguments; of two, both count if the first has no value, and so does the call."""
    try:
        return [one(variables, meter) for one in arguments]
    except EvaluationError:
        meter.cost += 1
        raise


def certain(resolved: Resolved, arguments: list[Step]) -> Step:
    """A call of the one overload that there is."""
    overload = resolved.overloads[0]

    def call(variables: Variables, meter: Meter) -> Any:
        values = evaluated(arguments, variables, meter)
        for one in values:
            if one is None and not overload.suits(values):  # a type says nothing of null
                meter.cost += 1
                raise EvaluationError(NO_OVERLOAD)
        return _called(overload, values, meter)

    return call


def uncertain(resolved: Resolved, arguments: list[Step]) -> Step:
    """A call of the overload that suits the values."""

    def call(variables: Variables, meter: Meter) -> Any:
        values = evaluated(arguments, variables, meter)
        for overload in resolved.overloads:
            if overload.suits(values):
                return _called(overload, values, meter)
        meter.cost += 1
        raise EvaluationError(NO_OVERLOAD)

    return call


def _called(overload: Overload, values: list[Any], meter: Meter) -> Any:
    try:
        found = overload.work(*values)
    except EvaluationError:
        meter.cost += 1 if overload.cost is None else overload.cost(values, "")
        raise
    except (TypeError, AttributeError):  # a null, or something else of another type, in a list or a map
        meter.cost += 1
        raise EvaluationError(NO_OVERLOAD) from None
    meter.cost += 1 if overload.cost is None else overload.cost(values, found)
    meter.check()
    return found


def index_step(whole: Step, index: Step, *, is_optional: bool) -> Step:
    """An item of a list or a map."""

    def take(variables: Variables, meter: Meter) -> Any:
        found, key = whole(variables, meter), index(variables, meter)
        meter.cost += 1
        return optionally(found, key) if is_optional else item(found, key)

    return take


def is_true(step: Step, variables: Variables, meter: Meter) -> bool:
    """Whether a condition holds."""
    return step(variables, meter) is True
