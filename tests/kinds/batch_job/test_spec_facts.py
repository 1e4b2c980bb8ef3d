"""What is asked of a spec is read once, is that of these bytes and no others, and a bounded number is remembered."""

from __future__ import annotations

import msgspec
import pytest

from mirror.kinds.batch_job import spec_facts
from mirror.kinds.batch_job.spec_facts import facts_of


def spec_of(number: int, *, padding: int = 0) -> msgspec.Raw:
    """A spec with this many completions."""
    return msgspec.Raw(msgspec.json.encode({"completions": number, "template": "x" * padding}))


def test_a_spec_is_read_once() -> None:
    """As long as it is the same bytes; equal ones say the same."""
    spec = spec_of(3)
    assert facts_of(spec) is facts_of(spec)
    assert facts_of(spec) is not facts_of(spec_of(3))
    assert facts_of(spec) == facts_of(spec_of(3))


@pytest.mark.parametrize("padding", [0, 9000], ids=["usual", "long"])
def test_no_spec_is_taken_for_another_one(padding: int) -> None:
    """Bytes that are gone leave their place to others."""
    for number in range(2000):
        size = facts_of(spec_of(number, padding=padding)).size
        assert size is not None
        assert size.completions == number


def test_few_specs_are_remembered() -> None:
    """Who makes many Jobs, or long ones, chooses no size of ours."""
    for number in range(2000):
        facts_of(spec_of(number, padding=1000 * (number % 20)))
    remembered = list(spec_facts._known.values())
    assert len(remembered) <= 256
    assert all(len(spec) <= 8192 for spec, _ in remembered)


@pytest.mark.parametrize("raw", [b"null", b"[1]", b"{", b'{"suspend":"yes"}', b'{"completions":"2"}'])
def test_what_cannot_be_read_is_not_there(raw: bytes) -> None:
    """A worker may answer anything (D7)."""
    found = facts_of(msgspec.Raw(raw))
    assert (found.managed_by, found.is_suspended) == (None, False)
    assert found.size is None or found.size.completions is None
