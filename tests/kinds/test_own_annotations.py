"""Names of annotations that look like ours and are none (D22)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mirror.kinds.own_annotations import MOST, mistakes
from mirror.kinds.registry import JOB
from mirror.kube.objects import decode_object


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
    "key", ["jobmirror.io/worker-selector", "jobmirror.io/held", "acme.io/worker-selector", "worker-selector", "a/b"]
)
def test_ours_and_what_is_anothers_is_no_mistake(key: str) -> None:
    assert found({key: "x"}) == ()


def test_a_label_of_ours_is_not_read() -> None:
    text = "label jobmirror.io/worker-selector has no effect: set it as an annotation"
    assert found(labels={"jobmirror.io/worker-selector": "eu"}) == (text,)


def test_a_few_are_told() -> None:
    assert len(found({f"jobmirror.io/x{n}": "" for n in range(100)})) == MOST
