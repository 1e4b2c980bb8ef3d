"""Protobuf bodies: what kubectl 1.36 really sends, and what nobody should."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.batch.feature_gates import DEFAULT_GATES
from mirror.embedded.apiserver.apimachinery.decoding import bodies, protobuf
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import canonical
from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS, numbers
from mirror.embedded.apiserver.apimachinery.strategy import Strategy
from mirror.embedded.apiserver.build import builtin

KINDS = {kind.kind: kind for kind in builtin(DEFAULT_GATES)}
MAP = "6b3873000a0f0a0276311209436f6e6669674d6170121c0a120a02633912001a0022002a0032003800420012060a01611201621a002200"
CRON_JOB = (
    "6b3873000a130a0862617463682f763112"
    "0743726f6e4a6f6212a7010a130a03636a3912001a0022002a00320038004200128d010a0b2a2f35202a202a202a202a1a002a7c0a130a03"
    "636a3912001a0022002a00320038004200126532630a100a0012001a0022002a00320038004200124f12280a03636a39120762757379626f"
    "781a04646174652a0042006a007200800100880100900100a201001a094f6e4661696c757265320042004a0052005800600068008201008a"
    "01009a0100c201001a001a002200"
)
REVIEW = (
    "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a65637441636365737352657669"
    "6577123f0a100a0012001a0022002a0032003800420012210a1f0a0764656661756c7412066372656174651a0022002a04706f6473320"
    "03a001a08080012001a0020001a002200"
)


def decoded(data: bytes, kind: Kind) -> Any:
    body = bodies.decode(data, protobuf.PROTOBUF_TYPE, kind, "Strict").body
    return canonical(body, kind.strategy.struct)


def test_a_config_map_of_kubectl_is_read() -> None:
    """``kubectl create configmap c9 --from-literal=a=b``."""
    body = decoded(bytes.fromhex(MAP), KINDS["ConfigMap"])
    assert body == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c9"}, "data": {"a": "b"}}


def test_a_cron_job_of_kubectl_is_read() -> None:
    """``kubectl create cronjob cj9 --image=busybox --schedule='*/5 * * * *' -- date``."""
    body = decoded(bytes.fromhex(CRON_JOB), KINDS["CronJob"])
    assert body["spec"]["schedule"] == "*/5 * * * *"
    pod = body["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "OnFailure"
    assert pod["containers"] == [{"name": "cj9", "image": "busybox", "command": ["date"], "resources": {}}]
    assert body["spec"]["jobTemplate"]["metadata"] == {"name": "cj9"}


def test_reviews_are_read_as_well() -> None:
    """``kubectl auth can-i create pods``."""
    name = "SelfSubjectAccessReview"
    found = bodies.decode_as(
        bytes.fromhex(REVIEW), protobuf.PROTOBUF_TYPE, "authorization.k8s.io/v1", name, name, "Strict"
    )
    attributes = canonical(found.body, name)["spec"]["resourceAttributes"]
    assert attributes == {"namespace": "default", "verb": "create", "resource": "pods"}


def test_another_kind_is_refused() -> None:
    """The envelope says what it is."""
    with pytest.raises(StatusError, match="unknown conversion"):
        decoded(bytes.fromhex(MAP), KINDS["Secret"])


def test_custom_resources_have_no_protobuf() -> None:
    """415, as upstream."""
    with pytest.raises(StatusError) as caught:
        decoded(bytes.fromhex(MAP), Kind("example.com", "v1", "Widget", "widgets", Strategy()))
    assert caught.value.code == 415


@pytest.mark.parametrize("cut", range(4, len(MAP) // 2))
def test_what_is_cut_off_is_refused_or_read(cut: int) -> None:
    """Never anything else."""
    try:
        decoded(bytes.fromhex(MAP)[:cut], KINDS["ConfigMap"])
    except StatusError as refused:
        assert "unrecognized" in str(refused)  # noqa: PT017 - either is fine


@pytest.mark.parametrize("struct", sorted(STRUCTS))
def test_every_field_has_one_number(struct: str) -> None:
    """But those that only JSON has."""
    found = numbers.of_struct(struct)
    own = [name for name in STRUCTS[struct] if name not in found]
    assert set(own) <= {"apiVersion", "kind", "name"}


def test_every_kind_of_value_is_read() -> None:
    """Times, quantities, numbers or texts, bytes, raw JSON, maps, packed numbers."""

    def field(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    def whole(number: int, value: int) -> bytes:
        return bytes([number << 3]) + value.to_bytes(1, "big")

    meta = field(8, whole(1, 100) + whole(2, 5)) + field(11, field(1, b"a") + field(2, b"b"))
    assert protobuf.body(meta, "ObjectMeta") == {"creationTimestamp": "1970-01-01T00:01:40Z", "labels": {"a": "b"}}
    assert protobuf.body(field(8, b""), "ObjectMeta") == {"creationTimestamp": None}
    assert protobuf.body(field(2, whole(1, 1) + field(3, b"http")), "HTTPGetAction") == {"port": "http"}
    assert protobuf.body(field(2, whole(2, 80)), "HTTPGetAction") == {"port": 80}
    limits = field(1, field(1, b"cpu") + field(2, field(1, b"100m")))
    assert protobuf.body(limits, "ResourceRequirements") == {"limits": {"cpu": "100m"}}
    assert protobuf.body(field(2, field(1, b"k") + field(2, b"\xff")), "Secret") == {"data": {"k": "/w=="}}
    assert protobuf.body(field(7, field(1, b'{"f:a":{}}')), "ManagedFieldsEntry") == {"fieldsV1": {"f:a": {}}}
    assert protobuf.body(field(4, b"\x01\x02"), "PodSecurityContext") == {"supplementalGroups": [1, 2]}
    negative = b"\x08" + b"\xff" * 9 + b"\x01"
    assert protobuf.body(negative, "JobSpec") == {"parallelism": -1}
