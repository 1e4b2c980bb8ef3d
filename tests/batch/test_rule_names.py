"""Names of podFailurePolicy rules (RN1–RN5, D17): what they may be, whence they come, which reason they give."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.batch import rule_names
from mirror.batch.rule_names import BadRuleNames, Problem, check, names_of
from mirror.model import names

AT_0 = "Container main for pod default/p failed with exit code 42 matching FailJob rule at index 0"
AT_1 = "Pod default/p has condition DisruptionTarget matching FailJob rule at index 1"


def spec(*given: str | None, count: int | None = None) -> dict[str, Any]:
    rules = [{"action": "FailJob", **({} if name is None else {"name": name})} for name in given]
    return {"podFailurePolicy": {"rules": rules or [{"action": "FailJob"}] * (count or 0)}}


def annotated(text: str) -> dict[str, str]:
    return {names.RULE_NAMES: text}


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ([None, None], []),
        (["OutOfMemory", "Disrupted"], []),
        (["0", "1"], []),
        (["a", None, "5"], []),
        (["a,b:c_d"], []),
        (["a" * 111], []),
        ([""], [Problem(0, "Invalid", "must not be empty")]),
        (["a" * 112], [Problem(0, "TooLong", "may not be more than 111 characters")]),
        (["a", "a"], [Problem(1, "Duplicate", "another rule has this name")]),
        (["1", None], [Problem(0, "Invalid", "must not be the index of another rule")]),
    ],
    ids=[
        "unnamed",
        "named",
        "their own indexes",
        "an index that no rule has",
        "all characters",
        "as long as can be",
        "empty",
        "too long",
        "twice",
        "the index of another",
    ],
)
def test_names_are_checked(given: list[str | None], problems: list[Problem]) -> None:
    """RN3; RN5: unnamed rules never collide, but a name may not look like another's index."""
    assert check(given) == problems


@pytest.mark.parametrize("name", ["a-b", "a b", "a.", "a:", "a,", "ä", "a\n"])
def test_a_name_must_make_a_reason(name: str) -> None:
    """The pattern of condition reasons."""
    assert [problem.kind for problem in check([name])] == ["Invalid"]


def test_names_in_the_spec_count() -> None:
    """A server that knows the field has stored them; the annotation is for servers that drop it."""
    assert names_of(spec("Memory", None), annotated('{"1": "Other"}')) == {0: "Memory"}
    assert names_of(spec(None, None), annotated('{"1": "Other"}')) == {1: "Other"}
    assert names_of(spec(None, None), {}) is None
    assert names_of({}, {}) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not a JSON object of texts"),
        ("[]", "is not a JSON object of texts"),
        ('{"0": 1}', "is not a JSON object of texts"),
        ('{"a": "b"}', "has a key that is not the index of a rule"),
        ('{"00": "b"}', "has a key that is not the index of a rule"),
        ('{"-1": "b"}', "has a key that is not the index of a rule"),
        ('{"2": "b"}', "names rule 2, which podFailurePolicy does not have"),
        ('{"0": ""}', "the name of rule 0 must not be empty"),
        ('{"0": "a b"}', "the name of rule 0 must consist of letters"),
        ('{"0": "a", "1": "a"}', "the name of rule 1 is that of another rule"),
        ('{"0": "1"}', "the name of rule 0 must not be the index of another rule"),
        ("[" * 100_000, "is not a JSON object of texts"),
    ],
)
def test_a_bad_annotation_is_refused_with_its_reason(text: str, told: str) -> None:
    """The text is shown to users; it quotes nothing of theirs."""
    with pytest.raises(BadRuleNames, match=told.replace("(", r"\(")):
        names_of(spec(count=2), annotated(text))


def test_a_job_without_a_policy_has_no_rules_to_name() -> None:
    """An empty map names none, and is fine."""
    with pytest.raises(BadRuleNames, match="names rule 0, which podFailurePolicy does not have"):
        names_of({}, annotated('{"0": "a"}'))
    assert names_of({}, annotated("{}")) == {}


@pytest.mark.parametrize(
    ("given", "message", "knows", "reason"),
    [
        ({0: "Memory"}, AT_0, False, "PodFailurePolicy_Memory"),
        ({0: "Memory"}, AT_1, False, "PodFailurePolicy_1"),
        ({}, AT_1, False, "PodFailurePolicy_1"),
        (None, AT_0, False, "PodFailurePolicy"),
        (None, AT_0, True, "PodFailurePolicy_0"),
        ({0: "Memory"}, "failed somehow", False, "PodFailurePolicy"),
        ({0: "Memory"}, AT_0 + " or not", False, "PodFailurePolicy"),
    ],
    ids=["named", "unnamed", "no name given", "no map", "no map, kep", "another message", "not at the end"],
)
def test_the_reason_names_the_rule(given: dict[int, str] | None, message: str, knows: bool, reason: str) -> None:
    """RN1, RN2: found by the index at the end of the message (F4); Jobs without a map keep the plain reason."""
    assert rule_names.reason_of(given, message, server_knows_names=knows) == reason


def test_a_bad_annotation_is_as_none() -> None:
    """A Job that runs already is not stopped by it."""
    assert rule_names.reason(spec(count=1), annotated("x"), AT_0) == "PodFailurePolicy"
    assert rule_names.reason(spec(count=1), annotated('{"0":"A"}'), AT_0) == "PodFailurePolicy_A"


def test_the_annotation_is_written_in_order() -> None:
    """And can be read again."""
    text = rule_names.as_text({1: "b", 0: "a"})

    assert text == '{"0":"a","1":"b"}'
    assert names_of(spec(count=2), annotated(text)) == {0: "a", 1: "b"}
