"""What a server's schema of a kind says of a path."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mirror.kube import openapi
from mirror.kube.errors import BadAnswer, PageNotFound, TooLarge
from mirror.kube.openapi import Schema, addresses, document_of, schema_of
from mirror.kube.requests import Request
from mirror.kube.resources import Resource
from mirror.model.field_paths import FieldPath

SIMULATIONS = Resource("example.com", "v1", "simulations", "Simulation")
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TASK = {"type": "object", "properties": {"name": {"type": "string"}, "template": OPEN}}
SPEC = {
    "paused": {"type": "boolean"},
    "tasks": {"type": "array", "items": TASK},
    "byName": {"type": "object", "additionalProperties": TASK},
    "labels": {"type": "object", "additionalProperties": True},
    "pod": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}]},
    "closed": {"type": "object"},
}
WHOLE = {"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}}


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("spec.paused", ""),
        ("spec.pause", "spec.pause"),
        ("status.phase", "status"),
        ("spec.tasks[].template.spec.anything", ""),
        ("spec.tasks[].nme", "spec.tasks[].nme"),
        ("spec.tasks[name=a]", ""),
        ("spec.tasks.name", "spec.tasks.name"),
        ("spec.paused[]", "spec.paused[]"),
        ("spec.byName.worker.name", ""),
        ("spec.byName.worker.size", "spec.byName.worker.size"),
        ("spec.labels.a.b", ""),
        ("spec.pod.spec.nodeSelector", ""),
        ("spec.closed.a", "spec.closed.a"),
    ],
)
def test_a_path_is_a_field_or_is_not(path: str, missing: str) -> None:
    """Lists, maps, what is left open, and the API's own types, which are said elsewhere."""
    schema = Schema(json.dumps(WHOLE).encode())
    for _ in range(2):
        assert schema.missing(FieldPath.of_text(path)) == missing


class Server:
    """Answers one path."""

    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = answer
        self.most_bytes: int | None = None

    async def send(self, request: Request) -> bytes:
        assert request.path in ("/openapi/v3", "/openapi/v3/apis/example.com/v1")
        self.most_bytes = request.most_bytes
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def document(**schemas: Any) -> bytes:
    return json.dumps({"components": {"schemas": schemas}}).encode()


@pytest.mark.looptime
async def test_the_schema_of_a_kind_is_found_among_those_of_its_group() -> None:
    """By the name that API servers give it; none where nobody serves it."""
    found = await schema_of(
        Server(document(**{"com.example.v1.Simulation": WHOLE, "com.example.v1.Other": {}})), SIMULATIONS
    )
    assert found is not None
    assert found.missing(FieldPath.of_text("spec.pause")) == "spec.pause"
    assert await schema_of(Server(document(**{"com.example.v1.Other": WHOLE})), SIMULATIONS) is None
    assert await schema_of(Server(PageNotFound("404")), SIMULATIONS) is None
    for junk in (b"[]", b"{", b'{"components": {"schemas": {"com.example.v1.Simulation": []}}}'):
        with pytest.raises(BadAnswer):
            await schema_of(Server(junk), SIMULATIONS)


@pytest.mark.looptime
async def test_schemas_of_megabytes_are_read() -> None:
    """CR13, D29: Ray's group has five; what is read of one kind is little of them, and there is a bound."""
    described = {"type": "string", "description": "x" * 5_000_000}
    server = Server(document(**{"com.example.v1.Simulation": WHOLE, "com.example.v1.Large": described}))
    found = await schema_of(server, SIMULATIONS)
    assert found is not None
    assert found.missing(FieldPath.of_text("spec.pause")) == "spec.pause"
    assert server.most_bytes is not None
    assert 5_000_000 < server.most_bytes < 2**26


@pytest.mark.looptime
async def test_an_address_tells_whether_a_document_is_another_one() -> None:
    """As kube-apiserver's index has it; a server without one says nothing."""
    address = "/openapi/v3/apis/example.com/v1?hash=A1"
    index = {"paths": {"version": {}, "apis/example.com/v1": {"serverRelativeURL": address}}}
    assert (await addresses(Server(json.dumps(index).encode())))[document_of(SIMULATIONS)] == address
    assert await addresses(Server(PageNotFound("404"))) == {}
    with pytest.raises(BadAnswer):
        await addresses(Server(b"[]"))


@pytest.mark.looptime
async def test_what_is_larger_than_any_index_or_document_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """D29: a hostile server's four million short values would hold up everybody; bytes of an index are a MiB."""
    decoded: list[int] = []
    decode = msgspec.json.decode

    def counted(raw: bytes, **of: Any) -> Any:
        decoded.append(len(raw))
        return decode(raw, **of)

    monkeypatch.setattr(openapi.msgspec.json, "decode", counted)
    index = Server(b'{"paths":{' + b",".join(b'"%d":{}' % number for number in range(60_000)) + b"}}")
    with pytest.raises(TooLarge):
        await addresses(index)
    assert index.most_bytes == 2**20

    many = Server(b'{"components":{"schemas":{"x":[' + b"0," * 4_000_000 + b"0]}}}")
    with pytest.raises(TooLarge):
        await schema_of(many, SIMULATIONS)
    assert many.most_bytes is not None
    assert many.most_bytes <= 16 * 2**20
    assert decoded == []


@pytest.mark.looptime
async def test_the_schema_of_one_kind_is_no_longer_than_an_object() -> None:
    """CR13, D29: a definition has 1.4 MB at most; each level of it is looked at for each path."""
    described = {**WHOLE, "description": "x" * 5_000_000}
    with pytest.raises(TooLarge):
        await schema_of(Server(document(**{"com.example.v1.Simulation": described})), SIMULATIONS)
    described["description"] = "x" * 1_400_000
    assert await schema_of(Server(document(**{"com.example.v1.Simulation": described})), SIMULATIONS) is not None
