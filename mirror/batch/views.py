"""Reading decoded JSON without trusting its types.

Each function answers with the neutral value of its type when it finds anything else (null, absent, another type), which
is also how the API reads an absent field. Refusing wrong types is the decoder's business, not done here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_NO_FIELDS: Mapping[str, object] = {}


def mapping(value: object) -> Mapping[str, object]:
    """The object, or an empty one."""
    # Almost always a dict, which asking the abstract class takes five times as long to find out.
    return value if type(value) is dict or isinstance(value, Mapping) else _NO_FIELDS


def items(value: object) -> Sequence[object]:
    """The list, or an empty one."""
    return value if type(value) is list or isinstance(value, list | tuple) else ()


def text(value: object) -> str:
    """The string, or an empty one."""
    return value if isinstance(value, str) else ""


def optional_text(value: object) -> str | None:
    """The string, or None."""
    return value if isinstance(value, str) else None


def number(value: object) -> int:
    """The integer, or 0. ``True`` is no integer in JSON."""
    return value if type(value) is int else 0


def optional_number(value: object) -> int | None:
    """The integer, or None. ``True`` is no integer in JSON."""
    return value if type(value) is int else None
