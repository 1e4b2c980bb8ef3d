"""Objects at rest: what is packed comes back as it was, whatever it is, in much less memory."""

from __future__ import annotations

import sys

import msgspec
import pytest
from doubles.examples import examples
from doubles.jobs import as_object, job
from hypothesis import given
from hypothesis import strategies as st

from mirror.kube.objects import NO_PART, Meta, Object, decode_object
from mirror.kube.packing import Packer, unpack

PARTS = st.none() | st.binary(min_size=1, max_size=30_000)


@examples(200)
@given(st.lists(st.tuples(PARTS, PARTS, PARTS), min_size=1, max_size=5))
def test_what_is_packed_comes_back(objects: list[tuple[bytes | None, bytes | None, bytes | None]]) -> None:
    """Byte by byte, in any order, whatever was packed before it; a part that is not there is none again."""
    packer = Packer()
    found = [Object(Meta(name=str(number)), *map(_raw, parts)) for number, parts in enumerate(objects)]
    packed = [packer.pack(one) for one in found]
    for one, again in reversed(list(zip(found, map(unpack, packed), strict=True))):
        assert (again.metadata, again.spec, again.status, again.data) == (
            one.metadata,
            one.spec,
            one.status,
            one.data,
        )
        assert [part is NO_PART for part in (again.spec, again.status, again.data)] == [
            part is NO_PART for part in (one.spec, one.status, one.data)
        ]


def _raw(part: bytes | None) -> msgspec.Raw:
    return NO_PART if part is None else msgspec.Raw(part)


def test_a_part_that_is_null_is_none_again() -> None:
    """As decoding has it."""
    found = decode_object(b'{"metadata":{"name":"a"},"spec":null}')
    assert unpack(Packer().pack(found)).spec_dict() == {}


@pytest.mark.parametrize("count", [1, 64, 65, 1000])
def test_jobs_that_resemble_each_other_take_a_tenth(count: int) -> None:
    """Each is compressed against one of those before it, which is kept once for many."""
    packer = Packer()
    found = [_job(number) for number in range(count)]
    packed = [packer.pack(one) for one in found]
    patterns = {id(one.pattern): sys.getsizeof(one.pattern) for one in packed}
    takes = sum(len(one.content) for one in packed) + sum(patterns.values())
    assert len(patterns) == -(-count // 64)
    assert takes < (0.1 if count > 1 else 1.3) * sum(len(one.spec) + len(one.status) for one in found)


def _job(number: int) -> Object:
    body = job(f"train-{number}")
    env = [{"name": f"VARIABLE_{index}", "value": f"value {index} of a job"} for index in range(40)]
    body["spec"]["template"] = {"spec": {"containers": [{"name": "main", "image": f"train:{number}", "env": env}]}}
    body["status"] = {"active": number % 7, "startTime": f"2026-03-01T12:00:{number % 60:02}Z"}
    return as_object(body)
