"""One line of a watch: an event, an error by its meaning, or junk."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import error_event, event

from mirror.kube.errors import ApiError, BadAnswer, Expired, Forbidden, KubeError, ServerFailure
from mirror.kube.watch import INITIAL_EVENTS_END, decode_event


def test_an_event_is_decoded_without_managed_fields() -> None:
    """Metadata is there at once; spec and status are bytes until somebody wants them."""
    found = decode_event(event("MODIFIED", spec={"a": 1}, status={"b": [2]}))
    assert (found.type, found.object.metadata.name, found.object.version) == ("MODIFIED", "train", 5)
    assert (found.object.spec_dict(), found.object.status_dict()) == ({"a": 1}, {"b": [2]})


def test_what_is_kept_of_a_line_does_not_keep_the_line() -> None:
    """A spec of some bytes must not pin a message of megabytes."""
    line = event("ADDED", spec={"a": 1}, extra="x" * 20_000)
    kept = memoryview(decode_event(line).object.spec)
    assert kept.obj is not line
    assert len(kept.obj) < 100


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        (event("BOOKMARK"), False),
        (json.dumps({"type": "BOOKMARK", "object": {"metadata": {"annotations": {INITIAL_EVENTS_END: "true"}}}}), True),
        (json.dumps({"type": "ADDED", "object": {"metadata": {"annotations": {INITIAL_EVENTS_END: "true"}}}}), False),
        (event("ADDED")[:-1] + b',"initial_events_end":true}', False),
        (event("BOOKMARK")[:-1] + b',"initial_events_end":true}', False),
    ],
    ids=["a usual bookmark", "the marking bookmark", "an object with its annotation", "a forged field", "and another"],
)
def test_only_the_marking_bookmark_ends_the_initial_events(line: str | bytes, ends: bool) -> None:
    """A user may put the annotation on a Job; that ends nothing."""
    assert decode_event(line if isinstance(line, bytes) else line.encode()).initial_events_end is ends


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (error_event(410, "Expired"), Expired),
        (error_event(410, "Gone"), Expired),
        (error_event(0, "Expired"), Expired),
        (error_event(410, ""), Expired),
        (error_event(500, "InternalError"), ServerFailure),
        (error_event(403, "Forbidden"), Forbidden),
        (error_event(418, "Teapot"), ApiError),
        (b'{"type":"ERROR","object":{"message":"x","code":410,"metadata":{}}}', Expired),
        (b'{"type":"ERROR","object":{}}', ApiError),
        (b'{"type":"ERROR"}', BadAnswer),
        (b'{"type":"ERROR","object":{"code":"410"}}', BadAnswer),
        (b'{"type":"PURGED","object":{"metadata":{}}}', BadAnswer),
        (b'{"type":"ADDED","object":{}}', BadAnswer),
        (b'{"type":"ADDED","object":null}', BadAnswer),
        (b'{"object":{"metadata":{}}}', BadAnswer),
        (b"<html>no healthy upstream</html>", BadAnswer),
        (event("ADDED")[:-3], BadAnswer),
        (event("ADDED") + b"{}", BadAnswer),
        (b"[" * 200_000, BadAnswer),
        (b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}', BadAnswer),
        (b'{"type":"ADDED","object":{"metadata":{"generation":' + b"9" * 5000 + b"}}}", BadAnswer),
        (b"", BadAnswer),
    ],
)
def test_a_line_that_is_no_event_is_an_error_by_its_meaning(line: bytes, kind: type[KubeError]) -> None:
    """An ERROR event tells what a status would; anything else is not the Kubernetes API."""
    with pytest.raises(KubeError) as caught:
        decode_event(line)
    assert type(caught.value) is kind


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: event("ADDED", text)[:-5] + text.encode()))
def test_junk_is_a_bad_answer_and_nothing_else(line: bytes) -> None:
    """Whatever bytes come, no other exception does."""
    try:
        decode_event(line)
    except BadAnswer:
        return


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KEYS = st.sampled_from(["name", "labels", "annotations", "generation", "ownerReferences", "resourceVersion"])


@given(st.sampled_from(["ADDED", "ERROR", "BOOKMARK"]), st.dictionaries(KEYS, JSON), JSON)
def test_an_event_of_wrong_types_is_an_error_of_ours(kind: str, metadata: dict[str, object], rest: object) -> None:
    """Near misses: the right shape with other types inside."""
    line = json.dumps({"type": kind, "object": {"metadata": metadata, "spec": rest, "code": rest, "details": rest}})
    try:
        decode_event(line.encode()).object.spec_dict()
    except KubeError:
        return


@pytest.mark.parametrize("depth", [10, 63, 64, 65, 100, 2_000, 20_000])
@pytest.mark.parametrize("pair", ["{}", "[]"])
def test_what_is_nested_too_deeply_is_left_out(depth: int, pair: str) -> None:
    """Text that looks like nesting does not count."""
    opening, closing = ('{"f:\\"{[":', "}") if pair == "{}" else ("[", "]")
    deep = (opening * depth + '"x"' + closing * depth).encode()
    metadata = b'{"name":"train","resourceVersion":"5","managedFields":[{"fieldsV1":' + deep + b'}],"uid":"u"}'
    found = decode_event(b'{"type":"ADDED","object":{"spec":{"a":"}]"},"metadata":' + metadata + b',"status":{"b":1}}}')
    assert (found.object.metadata.name, found.object.metadata.uid, found.object.version) == ("train", "u", 5)
    assert (found.object.spec_dict(), found.object.status_dict()) == ({"a": "}]"}, {"b": 1})
