"""Objects, requests and paths as values."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.kube import requests
from mirror.kube.errors import ApiError, BadAnswer, Cause, Invalid
from mirror.kube.objects import Meta, Object, decode_object
from mirror.kube.resources import JOBS, NAMESPACES, PODS


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("", 0),
        ("abc", 0),
        ("-1", 0),
        ("1.5", 0),
        ("٣", 0),
        ("9" * 5000, 0),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_a_version_is_a_number_or_nothing(text: str, number: int) -> None:
    """API servers count; whatever else a server sends cannot be compared."""
    assert Object(Meta(resource_version=text)).version == number


@pytest.mark.parametrize(
    ("raw", "spec"),
    [
        (b'{"metadata":{}}', {}),
        (b'{"metadata":{},"spec":null}', {}),
        (b'{"metadata":{},"spec":[1]}', {}),
        (b'{"metadata":{},"spec":{"a":1}}', {"a": 1}),
    ],
    ids=["missing", "null", "another type", "an object"],
)
def test_a_part_is_always_a_mapping(raw: bytes, spec: dict[str, int]) -> None:
    """Readers need not ask first."""
    assert decode_object(raw).spec_dict() == spec


@pytest.mark.parametrize("part", [b'{"a":1e999}', b'{"a":"\xff"}', b'{"a":' + b"9" * 5000 + b"}"])
def test_a_part_that_cannot_be_decoded_is_a_bad_answer(part: bytes) -> None:
    """Parts are only skimmed on arrival, so this shows later; it is the server's fault all the same."""
    found = decode_object(b'{"metadata":{},"status":' + part + b"}")
    with pytest.raises(BadAnswer):
        found.status_dict()


def test_a_cached_object_cannot_be_changed_through_its_parts() -> None:
    """Each call decodes anew."""
    found = decode_object(b'{"metadata":{},"spec":{"a":{"b":1}}}')
    found.spec_dict()["a"]["b"] = 2
    assert found.spec_dict() == {"a": {"b": 1}}


@given(st.binary(max_size=60))
def test_junk_is_a_bad_answer_and_nothing_else(raw: bytes) -> None:
    """Whatever bytes come."""
    try:
        decode_object(raw)
    except BadAnswer:
        return
    assert msgspec.json.decode(raw)["metadata"] is not None


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "resourceVersion"])
def test_a_name_that_no_server_gives_is_a_bad_answer(field: str) -> None:
    """Names are kept by the thousand, so a server must not choose how long they are; the API allows 253 characters."""
    assert decode_object(f'{{"metadata":{{"{field}":"{"n" * 253}"}}}}'.encode()).metadata != Meta()
    with pytest.raises(BadAnswer):
        decode_object(f'{{"metadata":{{"{field}":"{"n" * 257}"}}}}'.encode())


def test_paths_are_those_of_the_api() -> None:
    """Core group and others, one namespace or all, subresources."""
    assert PODS.path("team", "a") == "/api/v1/namespaces/team/pods/a"
    assert JOBS.path() == "/apis/batch/v1/jobs"
    assert JOBS.path("team", "a", "status") == "/apis/batch/v1/namespaces/team/jobs/a/status"
    assert NAMESPACES.path("ignored", "team") == "/api/v1/namespaces/team"


def test_a_watch_that_begins_with_everything_asks_for_its_mark() -> None:
    """The two parameters belong together; the deadline leaves the server time to end it."""
    made = requests.watch(JOBS, timeout_seconds=300, initial_events=True)
    assert {("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")} <= set(made.query)
    assert made.deadline_seconds == 330


def test_a_page_s_token_replaces_the_version() -> None:
    """The server refuses both together."""
    query = dict(requests.list_page(JOBS, continue_token="x", resource_version="5").query)
    assert ("continue" in query, "resourceVersion" in query) == (True, False)


def test_a_delete_names_whom_it_means() -> None:
    """A namesake that was created meanwhile survives."""
    body = msgspec.json.decode(requests.delete(JOBS, "a", namespace="team", uid="u-1").body or b"")
    assert (body["preconditions"], body["propagationPolicy"]) == ({"uid": "u-1"}, "Background")


POLICY = "jobs.batch \"x\" is forbidden: ValidatingAdmissionPolicy 'no-root' with binding 'b' denied request: {spec}"


@pytest.mark.parametrize(
    ("error", "brief"),
    [
        (
            Invalid(422, "Invalid", "Job is invalid: {everything}", (Cause("spec.x", "FieldValueInvalid", "5"),)),
            "spec.x: FieldValueInvalid",
        ),
        (Invalid(422, "Invalid", "Job is invalid: {everything}"), "the object is invalid"),
        (Invalid(422, "Invalid", "secret", (Cause("", "", "secret"),)), "the object is invalid"),
        (Invalid(422, "Invalid", POLICY, (Cause("", "", POLICY),)), "denied by ValidatingAdmissionPolicy 'no-root'"),
        (Invalid(422, "", 'admission webhook "a.b" denied the request: {all}'), 'denied by admission webhook "a.b"'),
        (Invalid(422, "Invalid", "{all}", (Cause("spec.x", "", "5"), Cause("", "", ""))), "spec.x"),
        (ApiError(500, "", "a\nb  c"), "a b c"),
        (ApiError(500, "", "x" * 999), "x" * 256 + "…"),
    ],
    ids=[
        "422 with causes",
        "422 without",
        "a cause of nothing",
        "a policy",
        "a webhook",
        "a cause without a reason",
        "line ends",
        "length",
    ],
)
def test_what_people_see_of_an_error_quotes_no_object(error: ApiError, brief: str) -> None:
    """A 422 may contain the whole Job, and Jobs contain secrets (D18)."""
    assert error.brief == brief
    assert ": :" not in str(error)
    assert not str(error).endswith((":", " "))


def test_metadata_comes_back_as_it_was() -> None:
    """DF12: a status PUT replaces it; managed fields alone are left out, which the server then keeps."""
    owners = [
        {"apiVersion": "a/v1", "kind": "K", "name": "n", "uid": "u", "controller": False, "blockOwnerDeletion": True},
        {"apiVersion": "a/v1", "kind": "K", "name": "n", "uid": "v"},
    ]
    metadata = {
        "name": "n",
        "generateName": "n-",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0,
        "labels": {"a": "1"},
        "annotations": {"b": "2"},
        "finalizers": ["c"],
        "ownerReferences": owners,
    }
    found = decode_object(msgspec.json.encode({"metadata": metadata | {"managedFields": [{}]}}))
    assert msgspec.to_builtins(found.metadata) == metadata


def test_a_strategic_merge_patch_and_a_status_put_are_requests_like_others() -> None:
    """The one says so by its content type, the other by its path; a place in line is a copy's."""
    patch = requests.strategic_merge_patch(PODS, "p", b"{}", namespace="team")
    assert (patch.method, patch.content_type) == ("PATCH", "application/strategic-merge-patch+json")
    assert patch.path == "/api/v1/namespaces/team/pods/p"
    put = requests.update(JOBS, "j", {}, namespace="team", subresource="status")
    assert (put.method, put.path) == ("PUT", "/apis/batch/v1/namespaces/team/jobs/j/status")
    second = put.in_line(requests.Rank.SECOND, "flow")
    assert (put.rank, put.flow, second.rank, second.flow) == (requests.Rank.FIRST, "", requests.Rank.SECOND, "flow")
    assert second.path == put.path
