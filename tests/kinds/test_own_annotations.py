"""Names of annotations that look like ours and are none (D22)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from mirror.kinds import own_annotations
from mirror.kinds.own_annotations import MOST, MOST_JUDGED, mistakes, mistakes_since, wrong_names
from mirror.kinds.registry import JOB
from mirror.kube.objects import Object, decode_object
from mirror.model import names, text


def found(annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None) -> tuple[str, ...]:
    metadata: dict[str, Any] = {"name": "a", "annotations": annotations or {}, "labels": labels or {}}
    return mistakes(decode_object(msgspec.json.encode({"metadata": metadata})), JOB.own_annotations)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (
            "jobmirror.io/workers-selector",
            "unknown annotation jobmirror.io/workers-selector (did you mean jobmirror.io/worker-selector?)",
        ),
        (
            "jobmirrors.io/worker-selector",
            "unknown annotation jobmirrors.io/worker-selector (did you mean jobmirror.io/worker-selector?)",
        ),
        (
            "jobmirror.io/workers-order",
            "unknown annotation jobmirror.io/workers-order (did you mean jobmirror.io/worker-order?)",
        ),
        ("jobmirror.io/spread", "unknown annotation jobmirror.io/spread (did you mean jobmirror.io/spread-by?)"),
        ("jobmirror.io/prioritty", "unknown annotation jobmirror.io/prioritty (did you mean jobmirror.io/priority?)"),
        ("jobmirror.io/zzz", "unknown annotation jobmirror.io/zzz"),
    ],
)
def test_what_was_probably_meant_is_said(key: str, text: str) -> None:
    assert found({key: "x"}) == (text,)


@pytest.mark.parametrize(
    "key", ["jobmirror.io/worker-selector", "jobmirror.io/held", "acme.io/worker-selector", "priority", "carry", "a/b"]
)
def test_ours_and_what_is_anothers_is_no_mistake(key: str) -> None:
    assert found({key: "x"}) == ()


def test_a_label_of_ours_is_not_read() -> None:
    text = "label jobmirror.io/worker-selector has no effect: set it as an annotation"
    assert found(labels={"jobmirror.io/worker-selector": "eu"}) == (text,)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("jobmirror.io/worker-selektor", " (did you mean the annotation jobmirror.io/worker-selector?)"),
        ("jobmirrors.io/carry", " (did you mean the annotation jobmirror.io/carry?)"),
        ("worker-selector", " (did you mean the annotation jobmirror.io/worker-selector?)"),
        ("jobmirror.io/zzz", ""),
    ],
)
def test_a_misspelt_label_is_pointed_out_as_a_misspelt_annotation_is(key: str, told: str) -> None:
    assert found(labels={key: "eu"}) == (f"label {key} has no effect{told}",)


@pytest.mark.parametrize(
    "key",
    [
        "jobmirror.io/origin",
        "jobmirror.io/source-uid",
        "jobmirror.io/management-uid",
        "app.kubernetes.io/name",
        "priority",
    ],
)
def test_other_labels_are_no_mistake(key: str) -> None:
    assert found(labels={key: "x"}) == ()


def test_what_is_an_annotation_too_is_told_once() -> None:
    misspelt = {"jobmirror.io/worker-selektor": "eu"}
    assert len(found(misspelt, labels=misspelt)) == 1


def test_a_few_are_told() -> None:
    assert len(found({f"jobmirror.io/x{n}": "" for n in range(100)})) == MOST


def test_a_known_name_without_the_prefix_is_pointed_out() -> None:
    """Only as it is, and of several words: one word may be anybody's."""
    assert found({"worker-selector": "eu"}) == (
        "annotation worker-selector has no effect (did you mean jobmirror.io/worker-selector?)",
    )
    assert found({"worker-select": "eu", "priority": "1"}) == ()


def since(before: dict[str, str], after: dict[str, str]) -> tuple[str, ...]:
    old, new = (
        decode_object(msgspec.json.encode({"metadata": {"name": "a", "annotations": one}})) for one in (before, after)
    )
    return mistakes_since(old, new, JOB.own_annotations)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            {},
            {"jobmirror.io/on-worker-los": "Wait"},
            ("unknown annotation jobmirror.io/on-worker-los (did you mean jobmirror.io/on-worker-loss?)",),
        ),
        (
            {"jobmirror.io/on-worker-loss": "Wait"},
            {"jobmirror.io/on-worker-loss": "Wayt"},
            ("annotation jobmirror.io/on-worker-loss: 'Wayt' is unknown (did you mean Wait?); Wait holds",),
        ),
        ({"jobmirror.io/carrry": ""}, {"jobmirror.io/carrry": "", "jobmirror.io/assigned-worker": "east"}, ()),
        ({"jobmirror.io/carrry": ""}, {"jobmirror.io/carrry": "", "team": "b"}, ()),
        ({"jobmirror.io/carrry": ""}, {}, ()),
    ],
    ids=["new", "another-value", "ours-changed", "others-changed", "removed"],
)
def test_only_what_was_changed_is_judged(before: dict[str, str], after: dict[str, str], told: tuple[str, ...]) -> None:
    assert since(before, after) == told


def test_a_label_that_comes_later_is_judged_too() -> None:
    """And what was there before is not told again, whatever it is."""
    was = {"name": "a", "labels": {"jobmirror.io/carrry": ""}}
    now = was | {"labels": {"jobmirror.io/carrry": "", "jobmirror.io/worker-selektor": "region=eu"}}
    old, new = (decode_object(msgspec.json.encode({"metadata": one})) for one in (was, now))
    text = (
        "label jobmirror.io/worker-selektor has no effect (did you mean the annotation jobmirror.io/worker-selector?)"
    )

    assert mistakes_since(old, new, JOB.own_annotations) == (text,)
    assert mistakes_since(new, new, JOB.own_annotations) == ()
    assert mistakes_since(new, old, JOB.own_annotations) == ()


def test_names_on_something_else_than_a_source() -> None:
    """By what means something there."""
    known, others = ("jobmirror.io/capacity", "jobmirror.io/namespace-prefix"), ("jobmirror.io/for-cluster-profiles",)
    annotations = ("jobmirror.io/capactiy", "namespace-prefix", "jobmirror.io/for-cluster-profiles", "a/b", "capacity")

    assert wrong_names(annotations, known, others=others) == (
        "unknown annotation jobmirror.io/capactiy (did you mean jobmirror.io/capacity?)",
        "annotation namespace-prefix has no effect (did you mean jobmirror.io/namespace-prefix?)",
    )
    assert len(wrong_names([f"jobmirror.io/x{n}" for n in range(100)], known)) == MOST


def huge(key: str, **more: str) -> Object:
    """A source with as many annotations and labels as fit into one; keys that differ by a number in theirs."""
    annotations, labels = ({key.format(n): "" for n in numbers} for numbers in (range(15_000), range(20_000, 50_000)))
    return decode_object(
        msgspec.json.encode({"metadata": {"name": "a", "annotations": annotations, "labels": {**labels, **more}}})
    )


JUDGES: dict[str, Callable[[Object], tuple[str, ...]]] = {
    "new": lambda found: mistakes(found, JOB.own_annotations),
    "changed": lambda found: mistakes_since(Object(type(found.metadata)(name="a")), found, JOB.own_annotations),
    "no-source": lambda found: wrong_names(found.annotations, JOB.own_annotations),
}


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every word that is compared with others, letter by letter: what costs."""
    words: list[str] = []

    def nearest(word: str, known: Iterable[str]) -> str | None:
        words.append(word)
        return text.nearest(word, known)

    monkeypatch.setattr(own_annotations, "nearest", nearest)
    own_annotations._is_near_ours.cache_clear()
    return words


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_a_domain_is_compared_once_and_nothing_after_the_last_that_is_told(
    judge: Callable[[Object], tuple[str, ...]], compared: list[str]
) -> None:
    """One user's object must not keep everybody else waiting."""
    assert len(judge(huge("oi.rorrimboj/{}a"))) == MOST
    assert len(compared) == 1 + MOST, "its domain, and a name for each that is told"


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_of_tens_of_thousands_of_domains_some_are_compared(
    judge: Callable[[Object], tuple[str, ...]], compared: list[str]
) -> None:
    assert judge(huge("oi.rorrim-{}/a")) == ()
    assert MOST_JUDGED <= len(compared) <= 2 * MOST_JUDGED


@pytest.mark.parametrize("judge", ["new", "changed"])
def test_what_is_exactly_ours_is_found_among_tens_of_thousands(judge: str) -> None:
    told = JUDGES[judge](huge("a-{}.example/a", **{names.WORKER_SELECTOR: "region=eu"}))
    assert told == (f"label {names.WORKER_SELECTOR} has no effect: set it as an annotation",)


def test_one_that_is_added_is_found_among_tens_of_thousands(compared: list[str]) -> None:
    """However many come before it: what is as it was is not judged."""
    before, after = (huge("oi.rorrimboj/{}a", **more) for more in ({}, {"jobmirror.io/worker-selektor": "x"}))
    assert len(mistakes_since(before, after, JOB.own_annotations)) == 1
    assert mistakes(after, JOB.own_annotations, but={*before.annotations, *before.labels}) == (
        "label jobmirror.io/worker-selektor has no effect (did you mean the annotation jobmirror.io/worker-selector?)",
    )
    assert len(compared) == 2
    compared.clear()
    assert mistakes_since(after, after, JOB.own_annotations) == ()
    assert not compared
