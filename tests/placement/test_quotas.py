"""How much of ResourceQuotas is free."""

from __future__ import annotations

import pytest

from mirror.placement.quotas import Amounts, amount_of, free_share


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("4", 4.0),
        (4, 4.0),
        ("500m", 0.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("2k", 2000.0),
        ("1Ki", 1024.0),
        ("2Gi", 2.0**31),
        ("1E", 1e18),
        ("1Ei", 2.0**60),
        ("1e3", 1000.0),
        ("12E2", 1200.0),
        ("1e-2", 0.01),
        ("0", 0.0),
    ],
)
def test_quantities_are_read_as_kubernetes_writes_them(text: object, amount: float) -> None:
    assert amount_of(text) == pytest.approx(amount)


@pytest.mark.parametrize("junk", ["", "-1", "x", "1 Gi", "1gi", "nan", "1e999", "9" * 40, None, True, [], "١"])
def test_what_is_no_quantity_is_not_known(junk: object) -> None:
    """A worker may answer anything; an amount that is no number limits nothing."""
    assert amount_of(junk) is None


@pytest.mark.parametrize(
    ("quotas", "share"),
    [
        ([], None),
        ([({"secrets": "1"}, {"secrets": "1"})], None),
        ([({"pods": "10"}, {"pods": "4"})], 0.6),
        ([({"pods": "10"}, {})], 1.0),
        ([({"pods": "10"}, {"pods": "12"})], 0.0),
        ([({"pods": "0"}, {"pods": "0"})], 0.0),
        ([({"requests.cpu": "2", "limits.memory": "4Gi"}, {"requests.cpu": "500m", "limits.memory": "3Gi"})], 0.25),
        ([({"pods": "10"}, {"pods": "1"}), ({"count/jobs.batch": "4"}, {"count/jobs.batch": "3"})], 0.25),
        ([({"pods": "many"}, {"pods": "1"}), ({"requests.nvidia.com/gpu": "8"}, {"requests.nvidia.com/gpu": 8})], 0.0),
    ],
)
def test_the_scarcest_counts(quotas: list[tuple[Amounts, Amounts]], share: float | None) -> None:
    """Of all quotas of a namespace, and of what Jobs and pods take."""
    found = free_share(quotas, objects=("count/jobs.batch",))
    assert found is share if share is None else found == pytest.approx(share)


def test_of_objects_those_count_that_are_mirrored() -> None:
    """A namespace with room for Jobs has none for a JobSet whose own quota is used up."""
    quotas = [({"count/jobsets.jobset.x-k8s.io": "2", "count/secrets": "1"}, {"count/jobsets.jobset.x-k8s.io": "2"})]
    assert free_share(quotas, objects=("count/jobs.batch",)) is None
    assert free_share(quotas, objects=("count/jobs.batch", "count/jobsets.jobset.x-k8s.io")) == 0.0
