"""What becomes of a request that another manager has to answer: what its caller gets, and what is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

from mirror.access.answers import StatusError, refusal
from mirror.access.bounds import Bounds
from mirror.access.elsewhere import Elsewhere, Members, Owner, PassedOn
from mirror.access.peers import NoAnswer, Peers
from mirror.access.request_parsing import Asked, Question
from mirror.access.under_way import TooMany
from mirror.kinds.registry import JOB
from mirror.kube.transport import Answer

PODS = Question(JOB, "default", "train", "pods")
WITH_TOKEN, WITH_CERTIFICATE = Asked("GET", "/", {"authorization": "Bearer token-of-ann"}), Asked("GET", "/")
OWNER, NOBODY = Owner("m-2", "east"), Owner("", "east")


@dataclass
class OtherManagers:
    """``Members`` and ``Peers``: they answer as a test says."""

    answering: Callable[[], Answer]
    me: str = "m-1"

    def address_of(self, member: str) -> str:
        return "10.0.0.2:8443"

    async def answer(self, *_: Any, **__: Any) -> Answer:
        return self.answering()


def says(code: int) -> Callable[[], Answer]:
    answer = refusal(StatusError(code, f"so says m-2: {code}"))
    return lambda: Answer(answer.status, dict(answer.headers), answer.body)


def fails(error: Exception) -> Callable[[], Answer]:
    def fail() -> Answer:
        raise error

    return fail


def never() -> Answer:
    raise AssertionError("nothing is sent")


@pytest.mark.parametrize(
    ("owner", "asked", "answering", "code", "words", "counted"),
    [
        pytest.param(OWNER, WITH_TOKEN, says(404), 404, "so says m-2", PassedOn.REFUSED, id="refused there"),
        pytest.param(OWNER, WITH_TOKEN, says(504), 504, "so says m-2", PassedOn.FAILED, id="failed there"),
        pytest.param(
            OWNER,
            WITH_TOKEN,
            fails(NoAnswer("does not answer: connection refused")),
            503,
            "manager m-2, which follows worker east, does not answer: connection refused",
            PassedOn.UNREACHABLE,
            id="no answer",
        ),
        pytest.param(
            OWNER,
            WITH_TOKEN,
            fails(TooMany(429, "4 requests of ann are under way; retry in one second")),
            429,
            "4 requests of ann are under way; retry in one second",
            PassedOn.THROTTLED,
            id="too many",
        ),
        pytest.param(
            NOBODY,
            WITH_TOKEN,
            never,
            503,
            "no manager follows worker east now: another one is about to",
            PassedOn.UNREACHABLE,
            id="nobody holds the slot",
        ),
        pytest.param(
            OWNER, WITH_CERTIFICATE, never, 503, "use a bearer token", PassedOn.NO_TOKEN, id="a client certificate"
        ),
        pytest.param(
            NOBODY,
            WITH_CERTIFICATE,
            never,
            503,
            "no manager follows worker east now: another one is about to",
            PassedOn.UNREACHABLE,
            id="a client certificate, which would not be looked at",
        ),
    ],
)
async def test_what_does_not_go_well_is_said_and_counted(
    owner: Owner, asked: Asked, answering: Callable[[], Answer], code: int, words: str, counted: PassedOn
) -> None:
    found: Counter[PassedOn] = Counter()
    others = OtherManagers(answering)
    elsewhere = Elsewhere(
        cast(Members, others), cast(Peers, others), {}, Bounds(), count=lambda result: found.update([result])
    )
    with pytest.raises(StatusError, match=words) as refused:
        await elsewhere.answer(owner, JOB, PODS, asked, person="ann")

    assert (refused.value.code, found) == (code, {counted: 1})
