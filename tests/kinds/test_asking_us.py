"""Whether an object on a worker asks to be mirrored itself, so that it is no mirror (D1)."""

from __future__ import annotations

import msgspec
import pytest

from mirror.kinds import registry
from mirror.kinds.asking import asks_us_alone
from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.objects import decode_object
from mirror.model import names
from mirror.settings.schema import KindEntry

OURS = names.DEFAULT_MANAGED_BY


@pytest.mark.parametrize(("managed_by", "wanted"), [(OURS, True), ("example.com/other", False), (None, False)])
def test_our_own_value_is_asked_of_us(managed_by: str | None, wanted: bool) -> None:
    found = {"metadata": {"name": "a"}, "spec": {"managedBy": managed_by} if managed_by else {}}
    (job,) = registry.BUILT_IN
    assert asks_us_alone(job, decode_object(msgspec.json.encode(found)), OURS) is wanted


def test_a_value_that_others_set_too_says_nothing() -> None:
    """Kueue puts it on a RayJob of a queue that it spreads over clusters; where our mirror runs it may do so, too."""
    kind = kinds_of([KindEntry(kind="RayJob")])["RayJob"]
    found = {"metadata": {"name": "a"}, "spec": {"managedBy": kind.managed_by_value}}
    assert kind.managed_by_value
    assert not asks_us_alone(kind, decode_object(msgspec.json.encode(found)), OURS)
