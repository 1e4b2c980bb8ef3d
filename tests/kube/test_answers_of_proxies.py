"""What answers without a Status is called what it most likely is."""

from __future__ import annotations

import pytest

from mirror.kube.answers import error_from_answer
from mirror.kube.errors import ApiError, describe

PAGE = b"<html><title>502</title></html>"
STATUS = b'{"kind":"Status","code":502,"reason":"BadGateway","message":"etcd is away"}'


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (502, "502: Bad Gateway without a Status: a proxy or load balancer answers, not a Kubernetes API server"),
        (403, "403: Forbidden without a Status: a proxy or load balancer answers, not a Kubernetes API server"),
        (599, "599: an answer without a Status: a proxy or load balancer answers, not a Kubernetes API server"),
    ],
)
def test_an_answer_without_a_status_is_of_a_proxy(code: int, text: str) -> None:
    """Nobody should look for it in the API server's log."""
    error = error_from_answer(code, {}, PAGE)
    assert isinstance(error, ApiError)
    assert error.is_of_proxy
    assert describe(error) == text


def test_an_answer_with_a_status_is_the_servers() -> None:
    """Whatever its code."""
    error = error_from_answer(502, {}, STATUS)
    assert isinstance(error, ApiError)
    assert not error.is_of_proxy
