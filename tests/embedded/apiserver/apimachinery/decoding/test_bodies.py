"""Bodies: what is read, what is warned of, and what is refused in which words."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.batch.feature_gates import DEFAULT_GATES
from mirror.embedded.apiserver.apimachinery.decoding import bodies, text, typed
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import canonical
from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS
from mirror.embedded.apiserver.apimachinery.strategy import Strategy
from mirror.embedded.apiserver.build import builtin

KINDS = {kind.kind: kind for kind in builtin(DEFAULT_GATES)}
JOB, MAP = KINDS["Job"], KINDS["ConfigMap"]
CUSTOM = Kind("example.com", "v1", "Widget", "widgets", Strategy())
UNREADABLE = 'Job in version "v1" cannot be handled as a Job: '
UNRECOGNIZED = (
    "the object provided is unrecognized (must be of type Job): couldn't get version/kind; json parse error: "
)
FULL: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train", "labels": {"a": "b"}, "creationTimestamp": None},
    "spec": {
        "parallelism": 2,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            }
        },
    },
}


def decoded(data: bytes | str, kind: Kind = JOB, *, validation: str = "Warn", content: str = "application/json") -> Any:
    raw = data.encode() if isinstance(data, str) else data
    return bodies.decode(raw, content, kind, validation)


def refusal(data: bytes | str, **how: Any) -> str:
    with pytest.raises(StatusError) as caught:
        decoded(data, **how)
    assert caught.value.code in (400, 415)
    return str(caught.value)


def test_a_good_body_is_read_as_it_is() -> None:
    """Nothing is added or lost but what canonical form does later."""
    assert decoded(json.dumps(FULL)).body == FULL


@pytest.mark.parametrize("data", ["{}", "null", '{"kind": "Job"}', '{"apiVersion": "batch/v1", "foo": 1}'])
def test_what_a_body_is_may_be_left_out(data: str) -> None:
    """The path says it."""
    assert decoded(data).body == {"apiVersion": "batch/v1", "kind": "Job"}


@pytest.mark.parametrize(
    ("data", "warnings"),
    [
        ('{"foo": 1}', ['unknown field "foo"']),
        ('{"Spec": {}}', ['unknown field "Spec"']),
        ('{"spec": {"a": {"b": 1, "b": 2}}}', ['unknown field "spec.a"']),
        ('{"kind": "Job", "kind": "Job"}', ['duplicate field "kind"']),
        ('{"metadata": {"labels": {"a": "1", "a": "2"}}}', ['duplicate field "metadata.labels.a"']),
        (
            '{"spec": {"template": {"spec": {"containers": [{"imag": "x"}]}}}}',
            ['unknown field "spec.template.spec.containers[0].imag"'],
        ),
        ('{"metadata": {"a\\u0022b": 1}}', ['unknown field "metadata.a\\"b"']),
        ('{"spec": {"template": {"spec": {"schedulingGroup": {}}}}}', []),
    ],
)
def test_unknown_and_repeated_fields_are_warned_of(data: str, warnings: list[str]) -> None:
    """E6; fields of gates that are off are known, and dropped without a word."""
    assert decoded(data).warnings == warnings
    assert decoded(data, validation="Ignore").warnings == []
    if warnings:
        assert refusal(data, validation="Strict") == f"{UNREADABLE}strict decoding error: {', '.join(warnings)}"


def test_what_is_there_twice_is_merged_as_the_server_does() -> None:
    """Of plain values the last counts, objects grow together."""
    found = decoded('{"metadata": {"name": "a", "uid": "u"}, "metadata": {"name": "b"}}')
    assert found.body["metadata"] == {"name": "b", "uid": "u"}
    assert found.warnings == ['duplicate field "metadata"']


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ('{"spec": "x"}', "json: cannot unmarshal string into Go struct field Job.spec of type v1.JobSpec"),
        (
            '{"spec": {"parallelism": "x"}}',
            "json: cannot unmarshal string into Go struct field JobSpec.spec.parallelism of type int32",
        ),
        (
            '{"spec": {"parallelism": 3000000000}}',
            "json: cannot unmarshal number 3000000000 into Go struct field JobSpec.spec.parallelism of type int32",
        ),
        (
            '{"spec": {"completionMode": 5}}',
            "json: cannot unmarshal number into Go struct field JobSpec.spec.completionMode of type v1.CompletionMode",
        ),
        (
            '{"spec": {"template": {"spec": {"volumes": [{"emptyDir": []}]}}}}',
            "json: cannot unmarshal array into Go struct field "
            "Volume.spec.template.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        ),
        (
            '{"metadata": {"labels": {"a": 1}}}',
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            '{"metadata": {"labels": {"a": 1}, "creationTimestamp": "soon"}}',
            'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"',
        ),
        (
            '{"spec": {"template": {"spec": {"overhead": {"cpu": "1x"}}}}}',
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
)
def test_a_wrong_type_is_told_in_the_words_of_the_server(data: str, why: str) -> None:
    """What reads itself (times, quantities) outweighs what was found wrong before."""
    assert refusal(data) == UNREADABLE + why


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("", f"{UNRECOGNIZED}unexpected end of JSON input (<empty>)"),
        ("{", f"{UNRECOGNIZED}unexpected end of JSON input ({{)"),
        ('{"a":1,}', f"{UNRECOGNIZED}invalid character '}}' looking for beginning of object key string ({{\"a\":1,}})"),
        (
            '{"kind":5}',
            f'{UNRECOGNIZED}json: cannot unmarshal number into Go struct field .kind of type string ({{"kind":5}})',
        ),
        (
            '{"kind": "Pod", "apiVersion": "v1"}',
            'Pod in version "v1" cannot be handled as a Job: converting (v1.Pod) to (batch.Job): unknown conversion',
        ),
        (
            '{"kind": "Cat"}',
            'Cat in version "v1" cannot be handled as a Job: no kind "Cat" is registered for version "batch/v1" '
            'in scheme "pkg/runtime/scheme.go:111"',
        ),
    ],
)
def test_what_is_no_job_is_refused(data: str, told: str) -> None:
    """Each in its own way."""
    assert refusal(data) == told


def test_an_events_other_version_is_told_apart() -> None:
    """Both are the same objects, but each path takes its own form."""
    told = refusal('{"apiVersion": "v1", "kind": "Event"}', kind=KINDS["Event"])
    assert told == "the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)"


def test_yaml_is_read_by_the_rules_of_yaml_1_1() -> None:
    """Octal numbers, words for booleans, keys that are numbers, anchors."""
    data = "spec: &s {parallelism: 010, suspend: yes}\nmetadata: {labels: {5: 'x', a: 'no'}}\nkind: Job"
    found = decoded(data, content="application/yaml")
    assert found.body["spec"] == {"parallelism": 8, "suspend": True}
    assert found.body["metadata"] == {"labels": {"5": "x", "a": "no"}}


def test_yaml_that_says_something_twice_is_warned_of_in_its_own_words() -> None:
    """Of several lines, one warning each."""
    found = decoded("metadata:\n  name: a\n  name: b", content="application/yaml")
    assert found.warnings == ['line 3: key "name" already set in map']
    assert found.body["metadata"] == {"name": "b"}


@pytest.mark.parametrize("data", ["[" * 100_000, '{"a":' * 20_000, "- " * 100_000, "? " * 100_000], ids=len)
def test_depth_of_yaml_is_survived(data: str) -> None:
    """What builds YAML does so by recursion in C, which would take the process with it."""
    assert "max depth" in refusal(data, content="application/yaml")


def test_yaml_cannot_explode() -> None:
    """References are counted each time they are followed."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert "excessive aliasing" in refusal(bomb, content="application/yaml")


@pytest.mark.parametrize("content", ["text/plain", "application/cbor", "json"])
def test_other_formats_are_refused(content: str) -> None:
    """415 with what is spoken."""
    assert refusal("{}", content=content).endswith(
        "accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, b"[" * 9_000 + b"]" * 9_000]
)
def test_depth_is_survived(data: bytes) -> None:
    """Far below what would hurt."""
    assert "exceeded max depth" in refusal(data)


def test_halves_of_characters_are_replaced() -> None:
    """As Go does: neither bytes that are no UTF-8 nor lone surrogates are an error."""
    assert decoded(b'{"metadata": {"name": "\xff\\ud800"}}').body["metadata"] == {"name": "\ufffd\ufffd"}


def test_an_empty_list_of_managed_fields_is_not_lost() -> None:
    """It asks for their removal, which canonical form would not see."""
    assert decoded('{"metadata": {"managedFields": []}}').body["metadata"] == {"managedFields": [{}]}


class Pruning(Strategy):
    """A kind with a schema of its own."""

    def prune(self, body: dict[str, Any]) -> list[str]:
        """What it does not know."""
        return [f"spec.{name}" for name in list(body.get("spec", {})) if name != "size" and body["spec"].pop(name)]


def test_a_custom_resource_has_its_own_fields_and_everybodys_metadata() -> None:
    """Its strategy prunes the rest."""
    kind = Kind("example.com", "v1", "Widget", "widgets", Pruning())
    data = '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","b":1},"spec":{"size":1,"hue":2}}'
    found = decoded(data, kind=kind)
    assert found.body["spec"] == {"size": 1}
    assert found.body["metadata"] == {"name": "a"}
    assert found.warnings == ['unknown field "metadata.b"', 'unknown field "spec.hue"']
    told = refusal('{"apiVersion": "example.com/v1"}', kind=kind)
    assert told.endswith(
        """Object 'Kind' is missing in '{"apiVersion": "example.com/v1"}' ({"apiVersion": "example.com/v1 ...)"""
    )


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Nothing else is ever raised."""
    for kind in (JOB, MAP, CUSTOM):
        for content in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
            for prefix in (b"", b"k8s\x00"):
                with suppress(StatusError):
                    decoded(prefix + data, kind=kind, content=content)


_NAMES = st.sampled_from(["name", "spec", "metadata", "labels", "template", "containers", "env", "x"])
_VALUES: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.none()
        | st.booleans()
        | st.integers(-(2**40), 2**40)
        | st.floats(allow_nan=False)
        | st.text(max_size=3)
        | st.lists(_VALUES, max_size=2)
        | st.dictionaries(_NAMES, _VALUES, max_size=3)
    )
)


@given(st.dictionaries(st.sampled_from(["spec", "metadata", "status", "kind", "zz"]), _VALUES))
def test_the_quick_way_reads_what_the_slow_way_reads(body: dict[str, Any]) -> None:
    """What is quick must not be another."""
    data = msgspec.json.encode(body)
    quick = text.decode(data, "Job")
    if quick is None:
        return
    reading = typed.Reading()
    slow = reading.body(text.parse(data), "Job")
    assert not reading.complaints
    assert canonical(quick, "Job") == canonical(slow, "Job")


@pytest.mark.parametrize("struct", sorted(STRUCTS))
def test_every_struct_can_be_read(struct: str) -> None:
    """Tables are complete: nothing refers to what is not there."""
    assert bodies.decode_as(b"{}", "", "", "", struct, "Strict").warnings == []
    assert isinstance(canonical({}, struct), dict)


@pytest.mark.parametrize(("items", "found"), [("[]", ""), ("[1, 2]", "AQI="), ("[null]", "AA=="), ("[0, 255]", "AP8=")])
def test_bytes_may_be_a_list_of_numbers(items: str, found: str) -> None:
    body = decoded(f'{{"metadata": {{"name": "a"}}, "binaryData": {{"z": {items}}}}}', MAP).body
    assert body["binaryData"] == {"z": found}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("[256]", "cannot unmarshal number 256 into Go struct field ConfigMap.binaryData of type uint8"),
        ('["a"]', "cannot unmarshal string into Go struct field ConfigMap.binaryData of type uint8"),
        ("{}", "cannot unmarshal object into Go struct field ConfigMap.binaryData of type []uint8"),
    ],
)
def test_other_bytes_are_refused(value: str, told: str) -> None:
    with pytest.raises(StatusError, match=re.escape(told)):
        decoded(f'{{"binaryData": {{"z": {value}}}}}', MAP)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("null", "Object 'Kind' is missing in 'null' (6e756c6c)"),
        ('{"kind": "Widget"}', "the API version in the data () does not match the expected API version"),
        ('{"apiVersion": "example.com/v2", "kind": "Widget"}', "the API version in the data (example.com/v2) does not"),
        ('{"apiVersion": "example.com/v1", "kind": "Other"}', 'kind: Invalid value: "Other": must be Widget'),
    ],
)
def test_another_custom_resource_is_refused(data: str, told: str) -> None:
    with pytest.raises(StatusError, match=re.escape(told)):
        decoded(data, CUSTOM)
