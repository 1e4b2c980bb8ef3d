"""Whatever is sent for whatever kind, the answer is an object or a Status that says what is wrong with it."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from doubles.examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from mirror.embedded.apiserver.build import build
from mirror.embedded.apiserver.messages import ADMIN, Request, Response
from tests.embedded.apiserver.registry.resources.playing import KINDS, Json
from tests.embedded.apiserver.registry.resources.test_every_kind import BODIES
from tests.embedded.apiserver.registry.test_subresources import Still

PATHS = {
    key: f"/{'apis' if kind.group else 'api'}/{kind.api_version}"
    f"{'/namespaces/default' if kind.is_namespaced else ''}/{kind.plural}"
    for key, kind in KINDS.items()
}
SUBRESOURCES = ("", "/status", "/finalize", "/ephemeralcontainers", "/binding", "/eviction", "/token")
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "a b", "2026-11-21T12:00:00Z", "10.0.0.1", "100m", "-1", "Never", "\ud800", "\0"]),
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a body."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def replaced(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    made = copy.copy(body)
    made[path[0]] = replaced(body[path[0]], path[1:], value)
    return made


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A valid object with something else in one or two places, created, put or patched."""
    key = draw(st.sampled_from(sorted(KINDS)))
    body: Any = {"metadata": {"name": "a", "labels": {"x": "y"}}, **BODIES.get(key, {})}
    for _ in range(draw(st.integers(0, 2))):
        body = replaced(body, draw(st.sampled_from(list(places(body)))), draw(VALUES))
    method = draw(st.sampled_from(["POST", "PUT", "PATCH"]))
    path = PATHS[key]
    if method != "POST" or draw(st.booleans()):
        path += "/a" + draw(st.sampled_from(SUBRESOURCES))
    content = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = json.dumps(body).encode("utf-8", "surrogatepass")
    return Request(method, path, "", {"content-type": content}, data, ADMIN)


@pytest.mark.slow
@examples(60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(requests(), min_size=1, max_size=6))
def test_nothing_breaks_a_kind(asked: list[Request], caplog: pytest.LogCaptureFixture) -> None:
    """Not even one request after the other."""
    server = build(clock=Still(), random=Random(1))

    async def ask() -> list[Json]:
        first = Request("POST", PATHS["", "Pod"], "", {"content-type": "application/json"}, _POD, ADMIN)
        answers = [await server.handle(one) for one in (first, *asked)]
        return [json.loads(one.body) for one in answers if isinstance(one, Response) and one.body]

    with caplog.at_level(logging.ERROR):
        found = asyncio.run(ask())

    assert not caplog.records
    assert all(one["kind"] for one in found)


_POD = json.dumps({"metadata": {"name": "a"}, **BODIES["", "Pod"]}).encode()
