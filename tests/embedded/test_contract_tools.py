"""What the contract and the sequences of requests are made of: normal forms, patterns, scripts, histories. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

import pytest
import yaml

from tests.contract.answer import Wrong
from tests.contract.api import Api
from tests.contract.files import written
from tests.contract.like import ABSENT, UID, Exactly, differences
from tests.contract.normal import Normal
from tests.contract.script import Script
from tests.contract.server import Server
from tests.contract.suite import all_groups
from tests.contract.wire import Asked, Reply, Streaming

_ONE = "0f0e0d0c-0b0a-4908-8706-050403020100"
_OTHER = "1f0e0d0c-0b0a-4908-8706-050403020100"


def test_equal_uids_stay_equal_and_others_differ() -> None:
    """So that a uid which changes shows, though nobody knows it beforehand."""
    normal = Normal()
    said = normal.of({"a": _ONE, "b": f"uid {_OTHER}", "c": _ONE})
    assert said == {"a": "<uid 1>", "b": "uid <uid 2>", "c": "<uid 1>"}
    assert normal.of({"again": _OTHER}) == {"again": "<uid 2>"}


def test_versions_are_told_in_order_and_those_of_lists_not_at_all() -> None:
    """A list is of everybody's version."""
    normal = Normal()
    assert (
        normal.of({"metadata": {"name": "a", "resourceVersion": "71"}})["metadata"]["resourceVersion"] == "<version 1>"
    )
    assert normal.of({"metadata": {"resourceVersion": "99"}})["metadata"]["resourceVersion"] == "<version of a list>"
    assert (
        normal.of({"metadata": {"name": "a", "resourceVersion": "72"}})["metadata"]["resourceVersion"] == "<version 2>"
    )


def test_times_of_long_ago_are_the_cases_own() -> None:
    """Only what the server's clock has said is replaced."""
    assert Normal().of("2001-01-01T00:00:00Z") == "2001-01-01T00:00:00Z"


def test_generated_names_lose_their_ends() -> None:
    """Also where they come again in a message."""
    normal = Normal()
    said = normal.of({"metadata": {"generateName": "job-", "name": "job-x7k2p"}})
    assert said["metadata"]["name"] == "job-<generated>"
    assert normal.of('jobs "job-x7k2p" not found') == 'jobs "job-<generated>" not found'


def test_managed_fields_count_only_if_asked_for() -> None:
    """And then in an order that does not hang on the second in which they were written."""
    entries = [{"manager": "b", "operation": "Update"}, {"manager": "a", "operation": "Update"}]
    assert Normal().of({"managedFields": entries}) == {}
    assert [one["manager"] for one in Normal(keeps_managers=True).of({"managedFields": entries})["managedFields"]] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    ("expected", "found", "wrong"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, [], id="other fields may be there"),
        pytest.param(Exactly(a=1), {"a": 1, "b": 2}, [".b: unexpected 2"], id="unless exactly these"),
        pytest.param({"a": ABSENT}, {"a": 1}, [".a: must not be there: 1"], id="absent"),
        pytest.param({"a": 1}, {}, [".a: missing"], id="missing"),
        pytest.param([1], [1, 2], [": 2 items, not 1: [1, 2]"], id="lists are as long"),
        pytest.param({"a": 1}, {"a": True}, [".a: true, expected 1"], id="true is no number"),
        pytest.param({"uid": UID}, {"uid": _ONE}, [], id="a form"),
    ],
)
def test_patterns(expected: object, found: object, wrong: list[str]) -> None:
    """One line for each thing that is not as it should be."""
    assert list(differences(expected, found)) == wrong


def test_what_is_written_is_what_is_read() -> None:
    """A recording changes nothing but what it adds."""
    case = {
        "case": "a b",
        "before": [{"POST configmaps": {"metadata": {"name": "a"}}}],
        "ask": "GET configmaps/a",
        "says": {"status": 200, "body": {"text": "é: {x}\n'\"", "number": 1.5, "list": [1, "2", None, True]}},
    }
    steps = {"case": "c", "managers": True, "steps": [case | {"pick": ["body.a"]}, {"ask": "GET x", "fine": True}]}
    assert yaml.safe_load(written(case) + written(steps)) == [case, steps]


async def test_lists_of_an_unordered_answer_are_compared_in_any_order() -> None:
    """A real server iterates over Go maps; lists that the step does not name keep their order."""
    warnings = [f'299 - "{text}"' for text in ("b", "a", "b")]
    case = {"case": "a", "ask": "GET configmaps", "pick": ["warnings", "body.list"], "unordered": ["warnings"]}

    async def problem(says: dict[str, object]) -> str:
        try:
            await Script.read(case | {"says": {"status": 200, **says}}).play(_answering({"list": [2, 1]}, warnings))
        except Wrong as wrong:
            return str(wrong)
        return ""

    assert await problem({"warnings": ["b", "b", "a"], "body.list": [2, 1]}) == ""
    assert ".warnings: 3 items, not 2" in await problem({"warnings": ["b", "a"], "body.list": [2, 1]})
    assert ".warnings[0]" in await problem({"warnings": ["c", "b", "b"], "body.list": [2, 1]})
    assert ".body.list[0]" in await problem({"warnings": ["a", "b", "b"], "body.list": [1, 2]})


def test_only_lists_that_are_there_can_be_unordered() -> None:
    """A name that nothing has would be a comparison in order that nobody notices."""
    case = {"case": "a", "ask": "GET configmaps", "unordered": ["warning"], "says": {"status": 200, "warnings": ["a"]}}
    with pytest.raises(AssertionError):
        Script.read(case)


def _answering(body: object, warnings: Sequence[str]) -> Api:
    """A server that answers all requests alike."""

    class Alike:
        async def send(self, asked: Asked) -> Reply:
            return Reply(200, tuple(("warning", text) for text in warnings), json.dumps(body).encode())

        def stream(self, asked: Asked) -> AbstractAsyncContextManager[Streaming]:
            raise NotImplementedError

    async def compact() -> None:
        pass

    return Api(Server("alike", Alike(), compact), "contract-1x")


def test_the_contract_is_of_more_than_four_hundred_cases() -> None:
    """Each with a name of its own."""
    names = [str(case) for group in all_groups() for case in group.cases]
    assert len(names) > 400
    assert len(names) == len(set(names))
