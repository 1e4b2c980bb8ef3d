"""What answers without a Status is called what it most likely is."""

from __future__ import annotations

import pytest

from mirror.kube.answers import error_from_answer
from mirror.kube.errors import (
    NO_STATUS,
    ApiError,
    Cause,
    Conflict,
    Forbidden,
    KubeError,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    describe,
    refusal_of,
)

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


FIX = "; the permissions to grant are in config/rbac"
ERRORS: dict[str, tuple[KubeError, str]] = {
    "a missing permission": (Forbidden(403, "Forbidden", "you may not"), f"403 Forbidden: you may not{FIX}"),
    "a proxy that lets nobody in": (error_from_answer(403, {}, b"<html>"), f"403: Forbidden{NO_STATUS}"),
    "a namespace that goes": (
        Forbidden(403, "Forbidden", "x", (Cause("", "NamespaceTerminating", ""),)),
        "403 Forbidden: x",
    ),
    "bad credentials": (Unauthorized(401, "Unauthorized", "no"), "401 Unauthorized: no"),
    "a conflict": (Conflict(409, "Conflict", "changed"), ""),
    "too many requests": (TooManyRequests(429, "TooManyRequests", "later"), ""),
    "a failure": (ServerFailure(500, "InternalError", "etcd"), ""),
    "no connection": (Unreachable("connection refused"), ""),
}


@pytest.mark.parametrize(("error", "because"), ERRORS.values(), ids=ERRORS)
def test_a_refusal_that_stays_says_the_way_out(error: KubeError, because: str) -> None:
    """What ends by itself is none; only a Kubernetes API server's 403 is about permissions."""
    assert refusal_of(error) == because
