"""Go's ``time.ParseDuration``, with its errors' texts, and how that library quotes what it cannot read. Pure.

Schedules (``@every 1h``) and the ``timeout`` of a request are written so.
"""

from __future__ import annotations

import re

_NANOSECONDS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_MOST = 2**63 - 1
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)", re.DOTALL)
_UNPLAIN = re.compile(r"[\x00-\x1f\x80-\U0010ffff]")


def parse(text: str) -> int:
    """Nanoseconds.

    Raises:
        ValueError: it is no duration; the text is the library's.
    """
    rest, sign = text, 1
    if rest[:1] in ("-", "+"):
        sign, rest = (-1 if rest[0] == "-" else 1), rest[1:]
    if rest == "0":
        return 0
    if not rest:
        raise ValueError(f"time: invalid duration {told(text)}")
    total = 0
    while rest:
        part = _PART.match(rest)
        if part is None or not (part[1] or part[2]):
            raise ValueError(f"time: invalid duration {told(text)}")
        if not part[3]:
            raise ValueError(f"time: missing unit in duration {told(text)}")
        unit = _NANOSECONDS.get(part[3])
        if unit is None:
            raise ValueError(f"time: unknown unit {told(part[3])} in duration {told(text)}")
        if len(part[1]) > 19:
            raise ValueError(f"time: invalid duration {told(text)}")
        fraction = (part[2] or "")[:18]
        total += int(part[1] or "0") * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        if total > _MOST:
            raise ValueError(f"time: invalid duration {told(text)}")
        rest = rest[part.end() :]
    return sign * total


def told(text: str) -> str:
    """A text as that library quotes it: byte by byte where it is not plain."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_UNPLAIN.sub(_bytes_of, plain)}"'


def _bytes_of(found: re.Match[str]) -> str:
    return "".join(f"\\x{one:02x}" for one in found[0].encode(errors="surrogatepass"))
