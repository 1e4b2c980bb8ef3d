"""Quantities are read, rounded and written as the API does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mirror.embedded.apiserver.apimachinery import quantities


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1023Ki", "1023Ki"),
        ("512", "512"),
        ("0.1Mi", "104857600m"),
        ("12e6", "12e6"),
        ("1e1", "10"),
        ("100E", "100E"),
        ("-1500m", "-1500m"),
        ("0.0000000001", "1n"),
        ("99Ei", "9223372036854775807"),
        *((text, "0") for text in (".", "-", "Gi", "+Ti", "k", "E", "e-9", "e3", ".Ki", "-.e3", "0Ei")),
    ],
)
def test_a_quantity_is_written_in_the_form_of_the_api(text: str, written: str) -> None:
    found = quantities.parse(text)

    assert found is not None
    assert written == found.text


@pytest.mark.parametrize("text", ["", "Pi", "-Ei", "e-10", "1 Gi", "1KI", "1e", "abc", "1e999", "9" * 65, "+-1"])
def test_what_is_no_quantity_is_none(text: str) -> None:
    assert quantities.parse(text) is None


@pytest.mark.parametrize(("text", "written"), [("100n", "1m"), ("1.0005", "1001m"), ("-0.5m", "-1m"), ("1Gi", "1Gi")])
def test_resources_are_rounded_up_to_thousandths(text: str, written: str) -> None:
    """DF8: rounding goes away from zero."""
    found = quantities.parse(text)

    assert found is not None
    assert written == quantities.rounded_up(found).text


def test_the_sum_has_the_form_of_the_first() -> None:
    one, other = quantities.parse("1Gi"), quantities.parse("1G")

    assert one is not None
    assert other is not None
    assert quantities.plus(one, other).text == "2073741824"
    assert quantities.plus(other, one).text == "2073741824"
    assert quantities.plus(one, one).text == "2Gi"


@given(some.text(alphabet="0123456789.+-eEinumkKMGTP", max_size=20))
def test_what_was_written_means_the_same(text: str) -> None:
    found = quantities.parse(text)
    if found is not None:
        again = quantities.parse(found.text)
        assert again is not None
        assert (found.nano, found.text) == (again.nano, again.text)
