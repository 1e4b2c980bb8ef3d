"""Patterns on texts: RE2, where the extra ``embedded`` is installed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mirror.embedded.apiserver.apimachinery import patterns
from mirror.embedded.apiserver.cel.functions.declared import Overload, of_pattern, overload
from mirror.embedded.apiserver.cel.times import CostExceeded, EvaluationError


class NotEvaluated(Exception):
    """There is nothing here that patterns run in (decision 0004): rules that need them are not judged."""


def overloads() -> Iterator[Overload]:
    """``find`` and ``findAll``."""
    yield overload(
        ".find(string,string)string", lambda text, pattern: next(iter(_found(text, pattern, 1)), ""), of_pattern
    )
    yield overload(".findAll(string,string)list(string)", lambda text, pattern: _found(text, pattern, -1), of_pattern)
    yield overload(".findAll(string,string,int)list(string)", _found_some, of_pattern)


def _found_some(text: str, pattern: str, most: int) -> list[str]:
    return _found(text, pattern, most)


def fits(text: str, pattern: str) -> bool:
    """Whether a pattern is found in a text.

    Raises:
        EvaluationError: it is no pattern.
        CostExceeded: that would take too long.
        NotEvaluated: as it says.
    """
    return _try(pattern, text).fits(text)


def _found(text: str, pattern: str, most: int) -> list[str]:
    return _try(pattern, text).all_in(text, most)


def _try(pattern: str, text: str) -> patterns.Pattern:
    if not patterns.are_evaluated():
        raise NotEvaluated
    try:
        found = patterns.pattern_of(pattern)
        found.check_cost(text)
    except patterns.BadPattern as error:
        raise EvaluationError(str(error)) from None
    except patterns.TooCostly:
        raise CostExceeded from None
    return found
