"""Findings about a worker: what is fine, what is worth a look, what is in the way."""

from datetime import UTC, datetime, timedelta

import pytest

from mirror.cli.worker.operations.checking.judging import (
    MISSING,
    fail,
    has_failed,
    judge_certificate,
    judge_clock,
    judge_entry,
    judge_latency,
    judge_namespaces,
    judge_needed,
    judge_optional,
    judge_tls,
    judge_token,
    judge_unreachable,
    ok,
)
from mirror.kube.errors import Unreachable
from mirror.kube.handshake import NoTls
from mirror.kube.permissions import Permission
from mirror.workers.inventory import Entry
from mirror.workers.tokens import Token

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
LIST, PATCH = Permission("list", "batch", "jobs"), Permission("patch", "batch", "jobs")


def token(*, passed: timedelta, lasts: timedelta, account: str = "jobmirror") -> Token:
    return Token(NOW - passed + lasts, NOW - passed, "jobmirror-system", account)


@pytest.mark.parametrize(
    ("ahead", "verdict"), [(0.4, "ok"), (-4.9, "ok"), (6.0, "warn"), (-7200.0, "warn"), (None, "warn")]
)
def test_clocks_may_differ_a_little(ahead: float | None, verdict: str) -> None:
    """A Date header alone is off by half a second."""
    assert judge_clock(ahead).verdict == verdict


def test_the_median_counts() -> None:
    """One slow answer is none of its usual ones."""
    assert judge_latency([0.01, 0.02, 9.0]).verdict == "ok"
    assert judge_latency([0.6, 0.02, 9.0]).verdict == "warn"


@pytest.mark.parametrize(
    ("found", "has_right", "verdict"),
    [
        (token(passed=DAY / 2, lasts=DAY), True, "ok"),
        (token(passed=DAY * 0.95, lasts=DAY), True, "warn"),
        (token(passed=DAY / 2, lasts=DAY), False, "warn"),
        (token(passed=DAY, lasts=300 * DAY), False, "ok"),
        (token(passed=DAY * 2, lasts=DAY), True, "fail"),
        (Token(), False, "warn"),
    ],
    ids=["renewed", "should have been renewed", "not renewed", "a year", "ended", "endless"],
)
def test_a_token_is_fine_while_somebody_cares(found: Token, has_right: bool, verdict: str) -> None:
    """Ended is a failure; to end soon without being renewed is a warning, with what to do."""
    judged = judge_token("east", found, has_token=True, has_right=has_right, now=NOW)

    assert judged.verdict == verdict
    assert verdict == "ok" or judged.fix


def test_no_token_is_no_fault() -> None:
    """A client certificate does as well."""
    assert judge_token("east", Token(), has_token=False, has_right=False, now=NOW).verdict == "ok"


@pytest.mark.parametrize(("left", "verdict"), [(30 * DAY, "ok"), (3 * DAY, "warn"), (-DAY, "fail"), (None, "ok")])
def test_certificates_end(left: timedelta | None, verdict: str) -> None:
    """Two weeks are time enough to renew one."""
    ends = None if left is None else NOW + left
    assert judge_certificate("TLS", ends, NOW, "renew it").verdict == verdict


def test_missing_rights_are_named_with_how_to_give_them() -> None:
    """Those that nothing works without."""
    judged = judge_needed("east", {LIST: True, PATCH: False}, ())

    assert (judged.verdict, judged.text) == ("fail", "missing: patch jobs")
    assert "mirror worker add east" in judged.fix


def test_rights_in_some_namespaces_need_a_setting() -> None:
    """The manager would watch the whole cluster otherwise."""
    judged = judge_needed("east", {LIST: True}, ["b", "a"])

    assert judged.verdict == "warn"
    assert "namespaces: [a, b]" in judged.fix


def test_optional_rights_are_no_fault() -> None:
    """They are told, for who wants what they are for."""
    judged = judge_optional("logs", {LIST: True, PATCH: False})

    assert (judged.verdict, judged.text) == ("ok", "not granted, and not needed without it: patch jobs")


@pytest.mark.parametrize(
    ("seen", "may_create", "verdict"),
    [
        ({}, False, "ok"),
        ({"a": "", "b": ""}, False, "ok"),
        ({"a": "", "b": MISSING}, False, "fail"),
        ({"a": "", "b": MISSING}, True, "warn"),
        ({"a": "exceeded quota"}, True, "fail"),
    ],
    ids=["no jobs", "all there", "one missing", "one that can be made", "quota"],
)
def test_namespaces_must_be_there(seen: dict[str, str], may_create: bool, verdict: str) -> None:
    """Or be made by the manager, where it may."""
    assert judge_namespaces("east", seen, may_create=may_create, kubectl="").verdict == verdict


@pytest.mark.parametrize(
    ("entry", "verdict"),
    [
        (Entry(), "warn"),
        (Entry(state="Connected", since="2026-03-01T11:00:00Z"), "ok"),
        (Entry(state="Connected", reason="metadata.annotations[x]: expected"), "warn"),
        (Entry(state="Lost", lost_since="2026-03-01T11:00:00Z", reason="401"), "fail"),
    ],
    ids=["not seen", "connected", "bad annotation", "lost"],
)
def test_the_manager_has_a_say(entry: Entry, verdict: str) -> None:
    """It asks from another place, and knows what no question shows."""
    assert judge_entry("east", entry).verdict == verdict


def test_a_worker_that_is_lost_although_all_goes_well_from_here_is_not_sent_to_other_checks() -> None:
    """A watch that is refused, or another way there: no check above has failed."""
    lost = Entry(state="Lost", reason="watch rejected: 403 Forbidden")
    elsewhere = judge_entry("east", lost).fix
    assert elsewhere.startswith("see failed checks above")
    assert judge_entry("east", lost, [fail("TLS", "expired", "renew it")]).fix == elsewhere
    assert judge_entry("east", lost, [ok("TLS", "valid")]).fix.startswith("nothing fails from here")


def test_a_workers_words_move_no_cursor() -> None:
    """D18: texts are cleaned where findings are made."""
    judged = judge_entry("east", Entry(state="Lost", reason="\x1b[2Jgone\nreally"))

    assert judged.text.isprintable()
    assert not has_failed([ok("x", "y")])
    assert has_failed([ok("x", "y"), judged])


@pytest.mark.parametrize(
    ("what", "advice"),
    [
        ("connection refused", "nothing listens there"),
        ("connection timed out after 5 s", "no firewall drops packets"),
        ("no such host (DNS)", "check the host name"),
        ("no route to host", "routes and VPN"),
        ("connection reset by the API server", "check that the API server runs"),
    ],
)
def test_advice_for_a_dead_server_is_about_the_way_to_it(what: str, advice: str) -> None:
    """Neither TLS nor tokens: nothing is known of them."""
    found = judge_unreachable("https://east:6443", Unreachable(what))

    assert (found.what, found.verdict) == ("connection", "fail")
    assert advice in found.fix
    assert not any(word in found.fix for word in ("TLS", "CA", "token", "certificate"))


@pytest.mark.parametrize(
    ("what", "advice"),
    [
        (
            "its certificate is not accepted: certificate signed by unknown authority",
            "mirror worker add east --context",
        ),
        ("its certificate is not accepted: certificate has expired", "renew the API server's certificate"),
        ("its certificate is not accepted: certificate is not yet valid (check both clocks)", "compare the clocks"),
        ("its certificate is not accepted: certificate is not valid for 10.0.0.1", "tls-server-name"),
        ("TLS handshake failed: server does not speak TLS on this port", "this port is not an API server's"),
        ("TLS handshake timed out after 5 s", "the CA of its cluster"),
    ],
)
def test_advice_for_tls_is_about_what_failed(what: str, advice: str) -> None:
    """Another CA, an end, a clock, a name, no TLS at all."""
    found = judge_tls("east", NoTls(what))

    assert (found.what, found.verdict) == ("TLS", "fail")
    assert advice in found.fix
