"""A body is held and given back as the API server does."""

from __future__ import annotations

import pytest

from mirror.embedded.apiserver.apimachinery.objects import canonical, same
from mirror.embedded.apiserver.registry.resources.pod_defaults import tag_of
from tests.embedded.apiserver.validation.jobs import JOBS, created, job


def test_what_means_nothing_is_not_there() -> None:
    """DF20: nulls, unknown fields, and values that are the same as none."""
    body = {
        "metadata": {"name": "train", "labels": {}, "creationTimestamp": None, "wings": 2},
        "spec": {
            "suspend": None,
            "completions": 0,
            "template": {"spec": {"hostNetwork": False, "hostname": "", "volumes": [], "securityContext": {}}},
        },
    }

    assert canonical(body) == {
        "metadata": {"name": "train"},
        "spec": {"completions": 0, "template": {"metadata": {}, "spec": {"securityContext": {}, "containers": None}}},
        "status": {},
    }


def test_a_null_in_a_map_or_a_list_is_an_empty_value() -> None:
    """As Go decodes it."""
    found = canonical({"labels": {"a": None}, "finalizers": [None]}, "ObjectMeta")

    assert found == {"labels": {"a": ""}, "finalizers": [""]}


def test_wrong_types_are_left_out() -> None:
    assert canonical(
        {"completions": "3", "suspend": 1, "selector": [], "template": 7, "parallelism": True}, "JobSpec"
    ) == {"template": {"metadata": {}, "spec": {"containers": None}}}


def test_an_empty_list_of_rules_is_told_apart_until_it_is_stored() -> None:
    """P9, DF20: a required list is served as null when it is empty."""
    made = created(job({"podFailurePolicy": {"rules": []}}))

    assert made["spec"]["podFailurePolicy"] == {"rules": []}
    assert JOBS.served(made)["spec"]["podFailurePolicy"] == {"rules": None}


def test_times_are_stored_in_whole_seconds() -> None:
    """V2."""
    made = created(job()) | {"status": {"startTime": "2026-01-01T01:00:00.5+01:00", "conditions": [{"type": "X"}]}}

    assert JOBS.served(made)["status"]["startTime"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"a": [], "b": 1}, {"b": 1}, True),
        ({"a": None}, {}, True),
        ({"a": {}}, {}, False),
        ({"a": [{"b": None}]}, {"a": [{}]}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": False}, {}, False),
    ],
)
def test_nothing_and_an_empty_list_are_the_same(one: object, other: object, equal: bool) -> None:
    """DF11: nil and empty are equal."""
    assert equal is same(one, other)


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("busybox", "latest"),
        ("busybox:latest", "latest"),
        ("busybox:1", "1"),
        ("registry:5000/team/app", "latest"),
        ("registry:5000/team/app:v1", "v1"),
        ("busybox@sha256:" + "0" * 64, ""),
        ("busybox:latest@sha256:" + "0" * 64, "latest"),
        ("Team/App", ""),
        ("", ""),
        ("a" * 64, ""),
        ("localhost/x", "latest"),
        ("[::1]:5000/x", "latest"),
        ("x" * 300, ""),
    ],
)
def test_the_tag_of_an_image(image: str, tag: str) -> None:
    """DF8: only the tag ``latest``, said or not, makes the pull policy Always."""
    assert tag == tag_of(image)
