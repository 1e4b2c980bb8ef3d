"""What a hostile server says in a Status reaches nobody as it is: not its reason, its causes, nor its message (D18)."""

from __future__ import annotations

import json

import pytest

from mirror.kube.answers import error_from_answer
from mirror.kube.errors import ApiError, describe

EVIL = "\x1b]0;owned\x07\x1b[2J\u202eEVIL\n\nfake: line\x9b"


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 422, 429, 500, 503])
@pytest.mark.parametrize("length", [1, 100])
def test_a_hostile_status_is_one_short_printable_line(code: int, length: int) -> None:
    """Whatever it holds, and wherever the error's text is put."""
    evil = EVIL * length
    status = {
        "kind": "Status",
        "reason": evil,
        "message": evil,
        "details": {"name": evil, "kind": evil, "causes": [{"field": evil, "reason": evil, "message": evil}] * 9},
    }
    error = error_from_answer(code, {}, json.dumps(status).encode())

    assert isinstance(error, ApiError)
    shown = (str(error), describe(error), error.brief, error.reason, error.about_name, error.about_kind)
    for text in (*shown, *(one.field for one in error.causes), *(one.reason for one in error.causes)):
        assert text.isprintable()
        assert len(text) <= 700
