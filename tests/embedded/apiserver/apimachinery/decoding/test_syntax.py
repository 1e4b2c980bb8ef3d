"""Where bytes are no JSON: found by our own scan exactly where a parser stumbles, told as the server does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.embedded.apiserver.apimachinery.decoding import scalars, syntax, text


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"a"', "unexpected end of JSON input"),
        (b"{a", "invalid character 'a' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 2}', "invalid character '2' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"nul", "invalid character ' ' in literal null (expecting 'l')"),
        (b"-", "invalid character ' ' in numeric literal"),
        (b"nulx", "invalid character 'x' in literal null (expecting 'l')"),
        (b"01", "invalid character '1' after top-level value"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b'"\x01"', "invalid character '\\x01' in string literal"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u12g"', "invalid character 'g' in \\u hexadecimal character escape"),
        (b"'", "invalid character '\\'' looking for beginning of value"),
        (b"[" * 10_001, "invalid character '[' exceeded max depth"),
    ],
)
def test_it_is_told_what_is_wrong(data: bytes, told: str) -> None:
    """In the words of Go's scanner."""
    assert syntax.complaint(data) == told


@given(
    st.lists(
        st.sampled_from([*'{}[],:"\\ \n', "0", "1", ".", "e", "-", "true", "null", '"a"', "\\u00", "x", "\x01"]),
        max_size=12,
    )
)
def test_it_agrees_with_a_parser_on_what_is_json(parts: list[str]) -> None:
    """Whatever is complained of does not parse, and the other way round."""
    data = "".join(parts).encode()
    try:
        text.parse(data)
    except text.NotJson:
        assert syntax.complaint(data)
    else:
        assert not syntax.complaint(data)


@pytest.mark.parametrize(
    ("time", "told"),
    [
        ("2026-01-31T23:59:59Z", ""),
        ("2026-01-31T23:59:59.123456789+02:00", ""),
        ("2024-02-29T00:00:00Z", ""),
        ("2026-02-29T00:00:00Z", 'parsing time "2026-02-29T00:00:00Z": day out of range'),
        ("2026-13-01T00:00:00Z", 'parsing time "2026-13-01T00:00:00Z": month out of range'),
        ("2026-01-01T24:00:00Z", 'parsing time "2026-01-01T24:00:00Z": hour out of range'),
        ("2026-01-01T00:00:00Zx", 'parsing time "2026-01-01T00:00:00Zx": extra text: "x"'),
        ("2026-01-01", 'parsing time "2026-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
    ],
)
def test_times_are_judged_as_go_judges_them(time: str, told: str) -> None:
    """Element by element of the layout."""
    assert scalars.time_complaint(time) == told


def test_micro_times_have_six_digits() -> None:
    """No more and no less."""
    assert not scalars.time_complaint("2026-01-01T00:00:00.000001Z", is_micro=True)
    assert 'cannot parse "Z" as ".000000"' in scalars.time_complaint("2026-01-01T00:00:00Z", is_micro=True)


@pytest.mark.parametrize(("value", "byte"), [("ab c", 2), ("abc", 0), ("abcd=", 4), ("ab=x", 2), ("!", 0)])
def test_bad_base64_is_told_with_its_place(value: str, byte: int) -> None:
    """Good text may have line ends in it."""
    assert scalars.base64_complaint(value) == f"illegal base64 data at input byte {byte}"
    assert not scalars.base64_complaint("YWJj\nZA==\r\n")
