"""Upstream's constants and the designs' feature gates, as an operator gives them: environment and flags become values.

``process`` and ``app`` read them at the start. What they mean is said at ``decide.values``. Not here: the settings
file of ``mirror run`` (``settings``), whose values are the defaults that the environment overrides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

import msgspec

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.decide.values import Constants
from mirror.model.text import nearest
from mirror.settings.feature_gates import UPSTREAM_GATES, judge_gate

ENVIRONMENT: Mapping[str, str] = {
    "JOB_BATCH_PERIOD_SECONDS": "batch_period_seconds",
    "JOB_API_BACKOFF_SECONDS": "api_backoff_seconds",
    "JOB_API_BACKOFF_MAX_SECONDS": "api_backoff_max_seconds",
    "JOB_POD_FAILURE_BACKOFF_SECONDS": "pod_failure_backoff_seconds",
    "JOB_MAX_POD_FAILURE_BACKOFF_SECONDS": "max_pod_failure_backoff_seconds",
    "JOB_MAX_UNCOUNTED_PODS": "max_uncounted_pods",
    "JOB_MAX_POD_CREATE_DELETE_PER_SYNC": "max_pod_create_delete_per_sync",
}
GATES_VARIABLE = "JOB_FEATURE_GATES"
GATES: Mapping[str, str] = {
    "".join(word.capitalize() for word in field.split("_")): field for field in FeatureGates.__struct_fields__
}
"""Field of ``FeatureGates`` by the gate's name."""
NEEDED_GATES: Mapping[str, str] = {"WorkloadWithJob": "GenericWorkload"}
"""A gate, and the one that has to be on with it, as upstream."""

MOST_SECONDS = 24 * 3600.0
MOST_PODS = 100_000
_MAY_BE_ZERO = frozenset(("batch_period_seconds",))
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?|\.[0-9]{1,9}")
_PAIRS = (
    ("JOB_API_BACKOFF_SECONDS", "JOB_API_BACKOFF_MAX_SECONDS"),
    ("JOB_POD_FAILURE_BACKOFF_SECONDS", "JOB_MAX_POD_FAILURE_BACKOFF_SECONDS"),
)


class InvalidConstant(ValueError):
    """A value that cannot be used; the text has one line per problem: which variable or gate, and the fix."""


def read_constants(environment: Mapping[str, str], defaults: Constants = Constants()) -> Constants:  # noqa: B008 - frozen
    """The constants, changed by what the environment says; an empty variable says nothing.

    Raises:
        InvalidConstant: a variable's value cannot be used.
    """
    problems: list[str] = []
    given: dict[str, float] = {}
    for variable, field in ENVIRONMENT.items():
        text = environment.get(variable, "").strip()
        if not text:
            continue
        try:
            given[field] = _seconds(text, field) if field.endswith("_seconds") else _whole(text)
        except InvalidConstant as refused:
            problems.append(f"{variable}: {refused}, got {text[:40]!r}")
    constants = msgspec.structs.replace(defaults, **given)
    problems += _check_pairs(constants, given)
    if problems:
        raise InvalidConstant("\n".join(problems))
    return constants


Warn = Callable[[str], None]
"""Takes a line about a gate that is ignored."""


def read_gates(
    text: str,
    defaults: FeatureGates = FeatureGates(),  # noqa: B008 - frozen
    *,
    what: str = "--feature-gates",
    warn: Warn = lambda _: None,
) -> FeatureGates:
    """FeatureGates from ``A=false,B=true``; ``what`` is how messages call the place where it stood.

    Upstream's gates that ours does not have go to ``warn``, where ignoring them changes nothing (``feature_gates``).

    Raises:
        InvalidConstant: a gate is not known, is neither true nor false, or cannot be ignored.
    """
    problems: list[str] = []
    given: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        is_value = bool(equals) and value.lower() in ("true", "false")
        if name not in GATES and name not in UPSTREAM_GATES:
            near = nearest(name, GATES)
            hint = f"did you mean {near}? " if near else ""
            problems.append(f"{what}: unknown gate {name[:60]!r} ({hint}known: {', '.join(sorted(GATES))})")
        elif not is_value:
            problems.append(f"{what}: {name} must be true or false, as in {name}=false, got {value[:40]!r}")
        elif name in GATES:
            given[GATES[name]] = value.lower() == "true"
        elif told := judge_gate(name, value.lower() == "true"):
            line, is_error = f"{what}: {told[0]}", told[1]
            problems.append(line) if is_error else warn(line)
    if problems:
        raise InvalidConstant("\n".join(problems))
    return msgspec.structs.replace(defaults, **given)


def check_gates(gates: FeatureGates) -> None:
    """Called once everything that switches gates has been read.

    Raises:
        InvalidConstant: a gate is on, and one that it needs is off.
    """
    problems = [
        f"feature gates: {name} is on and needs {needed}, which is off; set {needed}=true, too"
        for name, needed in NEEDED_GATES.items()
        if getattr(gates, GATES[name]) and not getattr(gates, GATES[needed])
    ]
    if problems:
        raise InvalidConstant("\n".join(problems))


def _seconds(text: str, field: str) -> float:
    seconds = float(text) if _NUMBER.fullmatch(text) else math.nan
    least = 0.0 if field in _MAY_BE_ZERO else 0.001
    if not least <= seconds <= MOST_SECONDS:
        raise InvalidConstant(f"expected seconds between {least:g} and {MOST_SECONDS:g}, such as 1 or 0.25")
    return seconds


def _whole(text: str) -> int:
    count = int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else 0
    if not 1 <= count <= MOST_PODS:
        raise InvalidConstant(f"expected a whole number between 1 and {MOST_PODS}, such as 500")
    return count


def _check_pairs(constants: Constants, given: Mapping[str, float]) -> list[str]:
    """A first delay beyond the longest: whichever was given is named."""
    problems = []
    for first, most in _PAIRS:
        if getattr(constants, ENVIRONMENT[first]) <= getattr(constants, ENVIRONMENT[most]):
            continue
        named = first if ENVIRONMENT[first] in given else most
        limit = f"not be more than {most}" if named == first else f"not be less than {first}"
        other = getattr(constants, ENVIRONMENT[most if named == first else first])
        problems.append(f"{named}: must {limit} ({other:g}); change one of both")
    return problems
