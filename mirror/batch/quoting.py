"""How the API server prints values inside the messages of causes (E4, E5): Go's quoting and Go's JSON.

For messages that have to read as the API server's do; not for logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_QUOTED = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_JSON = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_JSON_SPECIAL = re.compile('[\x00-\x1f"\\\\<>&\u2028\u2029]')


def quoted(value: str) -> str:
    """A string value: in double quotes, with everything unprintable escaped."""
    return '"' + "".join(_QUOTED.get(one) or (one if one.isprintable() else _escaped(one)) for one in value) + '"'


def json_text(value: str) -> str:
    """A string printed as JSON: the form of values that Go does not hold as a plain string (named types, pointers)."""
    return '"' + _JSON_SPECIAL.sub(lambda found: _JSON.get(found[0]) or f"\\u{ord(found[0]):04x}", value) + '"'


def json_texts(values: Sequence[str] | None) -> str:
    """A list of strings printed as JSON; a list that is not there is ``null``."""
    return "null" if values is None else "[" + ",".join(map(json_text, values)) + "]"


def _escaped(one: str) -> str:
    code = ord(one)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quoted_list(values: Iterable[str]) -> str:
    """Texts as Go prints a slice of them, each quoted."""
    return "[" + " ".join(map(quoted, values)) + "]"
