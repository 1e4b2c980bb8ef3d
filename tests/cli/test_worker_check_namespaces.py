"""What ``mirror worker check`` says of the namespaces where Jobs would be made."""

from __future__ import annotations

import pytest

from mirror.cli.worker.operations.checking.judging import MISSING, TERMINATING, judge_namespaces


@pytest.mark.parametrize(
    ("seen", "verdict", "text"),
    [
        ({"a": ""}, "ok", "Jobs can be created in a"),
        ({"a": "", "b": TERMINATING}, "warn", "being deleted: b"),
        ({"a": MISSING, "b": TERMINATING}, "fail", "missing: a"),
        ({"a": "403", "b": TERMINATING}, "fail", "a Job would be rejected in a: 403"),
    ],
)
def test_a_namespace_that_is_being_deleted_is_told_and_fails_nothing(
    seen: dict[str, str], verdict: str, text: str
) -> None:
    """It may be anybody's; what is wrong otherwise comes first."""
    found = judge_namespaces("east", seen, may_create=False, kubectl="")
    assert (found.verdict, found.text) == (verdict, text)
