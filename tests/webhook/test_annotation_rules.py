"""What the webhook refuses of annotations, and in which words (D16)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from doubles.jobs import Body, condition, job
from webhook_asking import UID, question

from mirror.kinds import own_annotations
from mirror.kinds.own_annotations import MOST, MOST_JUDGED
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.webhook import reviews
from mirror.webhook.validating import validate

OURS = names.DEFAULT_MANAGED_BY
RULES = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
BAD = {names.WORKER_SELECTOR: "a=(b"}


def with_annotations(annotations: dict[str, str], **spec: Any) -> Body:
    return job(annotations=annotations, **spec)


def placed(body: Body) -> Body:
    at = "2026-03-01T11:59:00Z"
    return {**body, "status": {"conditions": [condition(names.PLACED, at, reason="Placed", message="east")]}}


def refusal(body: Body, old: Body | None = None) -> str:
    return validate(question(body, old), OURS).denied_because


@pytest.mark.parametrize(
    ("annotations", "says"),
    [
        ({names.WORKER_SELECTOR: "region=eu,name in (a,b),!gpu"}, ""),
        ({names.WORKER_SELECTOR: ""}, ""),
        (
            BAD,
            "annotation jobmirror.io/worker-selector: 'a=(b': found '(', expected: identifier; write a label",
        ),
        ({names.ON_WORKER_LOSS: "Wait"}, ""),
        ({names.ON_WORKER_LOSS: "Reschedule"}, ""),
        ({names.ON_WORKER_LOSS: "wait"}, "annotation jobmirror.io/on-worker-loss: 'wait' is unknown; write Wait or R"),
        ({names.ON_MIRROR_LOSS: "Fail"}, ""),
        ({names.ON_MIRROR_LOSS: "Recreate"}, ""),
        ({names.CARRY: "configmaps, secrets"}, ""),
        ({names.CARRY: "configmap"}, "annotation jobmirror.io/carry: configmap is unknown;"),
        (
            {names.ON_MIRROR_LOSS: "\x1b[2J\n"},
            "annotation jobmirror.io/on-mirror-loss: '\\x1b[2J\\n' is unknown;",
        ),
        ({names.WORKER_ORDER: "east,eu-*", names.SPREAD_BY: "region", names.PRIORITY: "-5"}, ""),
        (
            {names.WORKER_ORDER: "region=eu"},
            "annotation jobmirror.io/worker-order: 'region=eu' is no name of a worker;",
        ),
        ({names.SPREAD_BY: "a b"}, "annotation jobmirror.io/spread-by: 'a b' is no name of a label;"),
        ({names.PRIORITY: "high"}, "annotation jobmirror.io/priority: 'high' is no priority;"),
        ({names.RULE_NAMES: '{"0":"OutOfMemory"}'}, ""),
        ({names.RULE_NAMES: '{"1":"X"}'}, "annotation jobmirror.io/pod-failure-policy-rule-names: names rule 1, which"),
        ({names.RULE_NAMES: "[" * 5000}, "annotation jobmirror.io/pod-failure-policy-rule-names: is not a JSON object"),
        ({names.RULE_NAMES: '{"0":"X:"}'}, "annotation jobmirror.io/pod-failure-policy-rule-names: the name of rule 0"),
        (BAD | {names.ON_MIRROR_LOSS: "x"}, "annotation jobmirror.io/worker-selector: "),
    ],
)
def test_annotations_of_a_new_job(annotations: dict[str, str], says: str) -> None:
    """The text names the annotation and what to write instead; nothing in it moves a cursor."""
    said = refusal(with_annotations(annotations, podFailurePolicy=RULES))
    assert said.startswith(says)
    assert bool(said) == bool(says)
    assert said.isprintable()
    assert said.count("annotation jobmirror.io/") == sum(bool(says) for _ in annotations)


@pytest.mark.parametrize("managed_by", [None, names.BUILT_IN_MANAGED_BY, "example.com/other"])
def test_jobs_of_others_may_carry_anything(managed_by: str | None) -> None:
    """We have no say in them."""
    assert refusal(job(managed_by=managed_by, annotations=BAD)) == ""


def test_an_old_mistake_stops_no_later_change() -> None:
    """Its release, its finalizers and its end must go through; a new mistake does not."""
    old = with_annotations(BAD)
    assert refusal(with_annotations(BAD, suspend=True), old) == ""
    assert "worker-selector" in refusal(with_annotations({names.WORKER_SELECTOR: "c=(d"}), old)


def test_rule_names_are_fixed_with_the_placement() -> None:
    """D17: the mirror has them by then. Before, and for other annotations after, changes are fine."""
    named = [with_annotations({names.RULE_NAMES: text}, podFailurePolicy=RULES) for text in ('{"0":"A"}', '{"0":"B"}')]
    plain = with_annotations({}, podFailurePolicy=RULES)
    assert refusal(named[1], named[0]) == ""
    for new in (named[1], plain):
        assert "fixed since the Job was placed on east" in refusal(new, placed(named[0]))
    assert "fixed since" in refusal(named[0], placed(plain))
    assert refusal(named[0], placed(named[0])) == ""


def test_only_the_webhook_marks_a_job_as_held() -> None:
    """Else we would end a suspension that a user wants."""
    held = {names.HELD: "true"}
    assert "only our webhook sets it" in refusal(with_annotations(held, suspend=True), with_annotations({}))
    assert "only our webhook sets it" in refusal(with_annotations(held, suspend=True), with_annotations(held))
    assert refusal(with_annotations(held, suspend=True), with_annotations(held, suspend=True)) == ""
    assert refusal(with_annotations({}, suspend=False), with_annotations(held, suspend=True)) == ""
    assert refusal(with_annotations(held, suspend=True)) == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Wait", ""),
        ("Reschedule", ""),
        ("Fence", "Fence is not allowed here for a Job; write Wait or Reschedule"),
        ("fence", "'fence' is unknown; write Wait or Reschedule"),
    ],
)
def test_policies_that_the_settings_do_not_allow_are_refused(text: str, says: str) -> None:
    """60, ``workers.onLossAllowed`` (D14): none that is refused is recommended, and what was there before stays."""
    allowed = frozenset((OnLoss.WAIT, OnLoss.RESCHEDULE))
    body = with_annotations({names.ON_WORKER_LOSS: text})
    verdict = validate(question(body), OURS, on_loss_allowed=allowed)
    assert verdict.denied_because == (f"annotation {names.ON_WORKER_LOSS}: {says}" if says else "")
    assert validate(question(body, body), OURS, on_loss_allowed=allowed).denied_because == ""


def test_wait_is_always_allowed() -> None:
    """Though the settings do not name it."""
    waits, moves = (with_annotations({names.ON_WORKER_LOSS: one.value}) for one in (OnLoss.WAIT, OnLoss.RESCHEDULE))
    fences = frozenset((OnLoss.FENCE,))
    assert validate(question(waits), OURS, on_loss_allowed=fences).denied_because == ""
    assert "write Wait or Fence" in validate(question(moves), OURS, on_loss_allowed=fences).denied_because


def test_misspelt_annotations_are_warned_of() -> None:
    """Not refused: another version may know them. And not all of a hundred."""
    verdict = validate(question(with_annotations({names.PREFIX + "worker-selecter": "a=b"})), OURS)
    answered = json.loads(reviews.answer(UID, verdict))["response"]
    assert answered == {
        "uid": UID,
        "allowed": True,
        "warnings": ["unknown annotation jobmirror.io/worker-selecter (did you mean jobmirror.io/worker-selector?)"],
    }
    many = with_annotations({f"{names.PREFIX}x{n}": "" for n in range(100)})
    assert len(validate(question(many), OURS).warnings) == MOST
    assert validate(question(many, many), OURS).warnings == ()


def test_few_of_very_many_annotations_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A review of a huge object must not make others wait; those that were there before are not compared at all."""
    words: list[str] = []
    monkeypatch.setattr(own_annotations, "nearest", lambda word, known: words.append(word))
    own_annotations._is_near_ours.cache_clear()
    many = with_annotations({f"oi.rorrim-{n}/a": "" for n in range(15_000)})
    assert validate(question(many), OURS).warnings == ()
    assert len(words) == MOST_JUDGED
    words.clear()
    own_annotations._is_near_ours.cache_clear()
    assert validate(question(many, many), OURS).warnings == ()
    assert not words


def test_a_refusal_on_the_wire() -> None:
    """With the code of an invalid object."""
    answered = json.loads(reviews.answer(UID, validate(question(with_annotations(BAD)), OURS)))["response"]
    assert (answered["allowed"], answered["status"]["code"]) == (False, 422)
    assert "jobmirror.io/worker-selector" in answered["status"]["message"]
