"""What an address asks for."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.page.health import STATES
from mirror.page.query import LONGEST, NOWHERE, Query, parse
from tests.doubles.pretended import job

NAMES = ("state", "only", "reason", "kind", "namespace", "worker", "label", "text", "sort")


@given(st.dictionaries(st.sampled_from([*NAMES, "page", "x"]), st.text(max_size=30)))
def test_any_address_means_something(given: dict[str, str]) -> None:
    """Nothing is refused, everything is bounded, and what is written is read back."""
    query = parse(given)
    assert query.page >= 1
    assert query.state in ("", *STATES)
    assert query.test()(job("any")) in (True, False)
    assert parse(dict(parse_qsl(query.address()))) == query


@pytest.mark.parametrize("page", ["0", "-1", "x", "1e9", "99999999999999999999", "²", "", "٣"])
def test_a_page_that_makes_no_sense_is_the_first(page: str) -> None:
    """Mistyped or malicious."""
    assert parse({"page": page}).page == 1


def test_values_are_bounded() -> None:
    """A long text costs no long search."""
    assert len(parse({"text": "x" * 100_000}).text) == LONGEST


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        (Query(), True),
        (Query(namespace="team-a"), True),
        (Query(namespace="team"), False),
        (Query(worker="east"), True),
        (Query(worker=NOWHERE), False),
        (Query(text="am-a/tra"), True),
        (Query(text="quota"), True),
        (Query(text="uid-of-train"), True),
        (Query(text="uid-of"), False),
        (Query(text="west"), False),
        (Query(state="Failed"), True),
    ],
    ids=["all", "namespace", "part of a namespace", "worker", "no worker", "in the full name", "in the reason", "uid",
         "part of a uid", "not there", "the state is chosen elsewhere"],
)  # fmt: skip
def test_what_a_query_means(query: Query, matches: bool) -> None:
    """Which Jobs it is about."""
    assert query.matches(job("train", namespace="team-a", because="Quota exceeded")) is matches


def test_no_worker_yet_is_a_choice() -> None:
    """Jobs that have none."""
    assert Query(worker=NOWHERE).matches(job("waits", "Waiting"))


def test_another_state_begins_at_its_first_page() -> None:
    """Page 7 of all may be none of another state."""
    assert parse({"page": "7", "text": "a"}).with_state("Failed") == Query(text="a", state="Failed")


def test_a_label_selector_that_cannot_be_read_finds_nothing_and_says_why() -> None:
    """Rather than all."""
    query = parse({"label": "a=b=c"})
    assert query.problem
    assert not query.matches(job("train", labels={"a": "b"}))
    assert Query(label="a in (b, c),!d").matches(job("train", labels={"a": "b"}))


def test_a_column_that_is_chosen_again_sorts_the_other_way() -> None:
    """And begins at its first page."""
    assert Query(page=3).sorted_by("name") == Query(sort="name")
    assert Query(sort="name").sorted_by("name") == Query(sort="-name")
    assert Query(sort="-name").sorted_by("name") == Query(sort="name")
