"""What a token says, when it is renewed, and how it takes another's place."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mirror.workers.tokens import (
    LONGEST_TOKEN,
    NO_TOKEN,
    Token,
    UselessToken,
    bearer_of,
    check_renewed,
    read_token,
    renew_at,
    seconds_to_ask_for,
    token_of,
    with_token,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SUBJECT = "system:serviceaccount:jobmirror-system:jobmirror"


def jwt(*, salt: str = "", **claims: Any) -> str:
    def part(content: object) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(content)).rstrip(b"=").decode()

    return f"{part({'alg': 'RS256'})}.{part(claims)}.{part(salt or 'signature')}"


def token(begin: datetime = NOON, lasts: timedelta = DAY, sub: str = SUBJECT, salt: str = "") -> str:
    return jwt(exp=int((begin + lasts).timestamp()), iat=int(begin.timestamp()), sub=sub, salt=salt)


def kubeconfig(bearer: str, **cluster: Any) -> bytes:
    document = {
        "current-context": "w",
        "contexts": [{"name": "w", "context": {"cluster": "w", "user": "w"}}],
        "clusters": [{"name": "w", "cluster": {"server": "https://east.example:6443", **cluster}}],
        "users": [{"name": "w", "user": {"token": bearer}}, {"name": "other", "user": {"token": "another"}}],
    }
    return b"# mine\n" + yaml.safe_dump(document, width=10**6).encode()


def test_a_token_says_whose_it_is_and_how_long() -> None:
    """The claims of a service account's token."""
    found = read_token(token())

    assert found == Token(NOON + DAY, NOON, "jobmirror-system", "jobmirror")
    assert found.lifetime_seconds == DAY.total_seconds()
    assert found.is_renewable


@pytest.mark.parametrize(
    "text",
    [
        "",
        "opaque",
        "a.b.c",
        "..",
        f"x.{base64.b64encode(b'[1]').decode()}.y",
        f"x.{base64.b64encode(b'[' * 5000).decode()}.y",
        "x." + "A" * LONGEST_TOKEN + ".y",
        "x.€.y",
        jwt(exp="tomorrow"),
    ],
    ids=["empty", "opaque", "not base64", "no parts", "a list", "deep", "too long", "not ascii", "a text"],
)
def test_what_is_not_readable_says_nothing(text: str) -> None:
    """A token may be of any form; nobody has to fail for it."""
    assert read_token(text) == NO_TOKEN


@given(
    st.text(max_size=200) | st.builds(lambda c: jwt(**c), st.dictionaries(st.text(max_size=5), st.floats() | st.text()))
)
def test_no_token_makes_reading_fail(text: str) -> None:
    """Whatever stands there."""
    read_token(text)


@pytest.mark.parametrize("exp", [0, -5, 1e300, 10**14], ids=["zero", "negative", "huge", "after the year 9999"])
def test_times_that_do_not_exist_are_none(exp: float) -> None:
    """Such a token is treated as one that never ends: the worker will say when it is over."""
    found = read_token(jwt(exp=exp, sub=SUBJECT))

    assert found.expires is None
    assert renew_at("east", found) is None


@pytest.mark.parametrize(
    "sub", ["", "alice", "system:serviceaccount:a", "system:serviceaccount:../x:y", f"{SUBJECT}/token"]
)
def test_only_service_accounts_can_be_asked_for(sub: str) -> None:
    """The name goes into a path: nothing but names may."""
    found = read_token(token(sub=sub))

    assert found.account == found.namespace == ""
    assert renew_at("east", found) is None


@given(st.text(max_size=20), st.integers(600, 10**8))
def test_tokens_are_renewed_when_two_thirds_are_over(worker: str, seconds: int) -> None:
    """Not all at once, and always with a third of the time left for trying again."""
    due = renew_at(worker, Token(NOON + timedelta(seconds=seconds), NOON, "a", "b"))

    assert due is not None
    assert 0.61 < (due - NOON).total_seconds() / seconds < 0.71


def test_a_token_that_does_not_say_when_it_was_made_is_taken_for_a_days() -> None:
    """Its life is not known, only its end."""
    due = renew_at("east", Token(NOON + 10 * DAY, None, "a", "b"))

    assert due is not None
    assert NOON + 9 * DAY < due < NOON + 10 * DAY


@pytest.mark.parametrize(
    ("lasts", "seconds"), [(timedelta(minutes=1), 600), (DAY, 86400), (timedelta(days=80000), 2**32)]
)
def test_a_new_token_lives_as_long_as_the_old_one(lasts: timedelta, seconds: int) -> None:
    """Within what an API server gives."""
    assert seconds_to_ask_for(Token(NOON + lasts, NOON, "a", "b")) == seconds


@pytest.mark.parametrize(
    ("lasts", "passed", "ending"),
    [
        (timedelta(days=365), timedelta(days=200), False),
        (timedelta(days=365), timedelta(days=280), True),
        (timedelta(days=10), timedelta(days=2), False),
        (timedelta(days=10), timedelta(days=4), True),
    ],
    ids=["half a year left", "a quarter left", "eight days left", "six days left"],
)
def test_somebody_should_know_of_the_last_week_or_quarter(lasts: timedelta, passed: timedelta, ending: bool) -> None:
    """Whichever is longer."""
    assert Token(NOON + lasts, NOON).is_ending(NOON + passed) is ending


def test_a_renewed_token_is_the_same_accounts_and_lasts_longer() -> None:
    """Only then it may take the place of the other."""
    old = read_token(token())

    assert check_renewed(old, token(NOON + DAY / 2), NOON).expires == NOON + DAY * 1.5


@pytest.mark.parametrize(
    "answer",
    [
        None,
        7,
        "",
        "not a jwt",
        "with space\n" + token(NOON + DAY),
        token(NOON + DAY, sub="system:serviceaccount:kube-system:admin"),
        token(NOON - DAY),
        token(NOON, DAY),
        jwt(sub=SUBJECT),
    ],
    ids=["none", "number", "empty", "opaque", "unprintable", "another account", "over", "not longer", "no end"],
)
def test_a_worker_cannot_plant_another_token(answer: object) -> None:
    """D12: what a worker answers is hostile until it is looked at."""
    with pytest.raises(UselessToken):
        check_renewed(read_token(token()), answer, NOON)


def test_the_new_token_stands_where_the_old_one_stood() -> None:
    """Comments, other users and the order of everything stay, byte for byte."""
    old, new = token(), token(NOON + DAY)

    assert with_token(kubeconfig(old), new) == kubeconfig(new)
    assert token_of(kubeconfig(new)).expires == NOON + 2 * DAY


def test_a_folded_token_is_replaced_too() -> None:
    """YAML may spell a text in many ways; then the file is written anew."""
    old, new = token(), token(NOON + DAY)
    folded = kubeconfig("TOKEN").replace(b"TOKEN", f'"{old[:40]}\\\n  {old[40:]}"'.encode())
    assert bearer_of(folded) == old

    changed = with_token(folded, new)

    assert bearer_of(changed) == new
    assert yaml.safe_load(changed)["users"][1] == {"name": "other", "user": {"token": "another"}}


def test_a_token_that_is_part_of_other_words_changes_nothing_else() -> None:
    """Even where the plain replacement would hit the server's name."""
    changed = with_token(kubeconfig("east"), "west")

    assert yaml.safe_load(changed)["clusters"][0]["cluster"]["server"] == "https://east.example:6443"
    assert bearer_of(changed) == "west"


@pytest.mark.parametrize("raw", [b"", b"{", b"a: &b [*b]", b"\xff", kubeconfig("")], ids=repr)
def test_a_kubeconfig_without_a_token_is_left_alone(raw: bytes) -> None:
    """There is nothing to renew."""
    assert token_of(raw) == NO_TOKEN
    with pytest.raises(UselessToken):
        with_token(raw, "new")
