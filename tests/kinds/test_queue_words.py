"""What a Workload of Kueue says of why it waits (D26)."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.kinds.queue_words import MOST_CHARACTERS, job_uid_of, why_not_admitted

QUOTA = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor spot"


def condition(kind: str, status: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": status, "message": message, "reason": "Pending"}


@pytest.mark.parametrize(
    ("spec", "conditions", "expected"),
    [
        pytest.param({}, [condition("QuotaReserved", "False", f"{QUOTA}, 1 more needed")], QUOTA, id="without counts"),
        pytest.param({}, [condition("QuotaReserved", "False", f"{QUOTA}, 512Mi more needed")], QUOTA, id="of memory"),
        pytest.param(
            {},
            [condition("QuotaReserved", "False", "insufficient quota for cpu in flavor spot, (9 > 5)")],
            "insufficient quota for cpu in flavor spot,",
            id="without figures in brackets",
        ),
        pytest.param(
            {}, [condition("QuotaReserved", "True", "ok"), condition("Admitted", "False", "x")], "x", id="checks"
        ),
        pytest.param(
            {},
            [condition("Evicted", "True", "Preempted to accommodate another"), condition("QuotaReserved", "False", "")],
            "Preempted to accommodate another",
            id="preempted",
        ),
        pytest.param(
            {}, [condition("Evicted", "False", "old"), condition("QuotaReserved", "False", "n")], "n", id="was"
        ),
        pytest.param({"active": False}, [], "its Workload is not active", id="held by hand"),
        pytest.param({}, [condition("QuotaReserved", "True", "ok")], "", id="admitted"),
        pytest.param({}, None, "", id="no conditions"),
        pytest.param({}, ["x", 1, {"type": 2}], "", id="nonsense"),
    ],
)
def test_it_says_why(spec: Any, conditions: Any, expected: str) -> None:
    """The first of its conditions that is not as it should be; what changes while others come and go is left out."""
    assert why_not_admitted(spec, {"conditions": conditions}) == expected


def test_hostile_words_are_cleaned_and_bounded() -> None:
    """D18, D29: it is a worker's text."""
    text = why_not_admitted({}, {"conditions": [condition("QuotaReserved", "False", "\x1b[31m" + "x" * 10_000)]})
    assert "\x1b" not in text
    assert 0 < len(text) <= MOST_CHARACTERS


def test_whose_it_is() -> None:
    """Kueue labels a Workload with its Job's uid."""
    assert (job_uid_of({"kueue.x-k8s.io/job-uid": "u-1"}), job_uid_of({})) == ("u-1", "")
