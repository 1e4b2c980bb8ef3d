"""What was found out about a worker, judged: fine, worth a look, or in the way; each with how to mend it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from mirror.cli.advice import OF_CONNECTION, first_fix
from mirror.kube.errors import KubeError, describe
from mirror.kube.permissions import Permission
from mirror.model.durations import format_duration
from mirror.model.text import clean
from mirror.workers.connection import State
from mirror.workers.inventory import Entry
from mirror.workers.tokens import Token, renew_at

Verdict = Literal["ok", "warn", "fail"]

MOST_SKEW_SECONDS = 5.0
"""Beyond ten, times of what happened on the worker are replaced by ours (D7)."""
SLOW_SECONDS = 0.5
ENDING = timedelta(days=14)


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at."""

    what: str
    verdict: Verdict
    text: str
    fix: str = ""


def ok(what: str, text: str) -> Finding:
    """A finding that is as it should be."""
    return Finding(what, "ok", clean(text))


def warn(what: str, text: str, fix: str) -> Finding:
    """A finding that keeps nothing from working yet."""
    return Finding(what, "warn", clean(text), fix)


def fail(what: str, text: str, fix: str) -> Finding:
    """A finding that keeps Jobs from running there."""
    return Finding(what, "fail", clean(text), fix)


def has_failed(findings: Sequence[Finding]) -> bool:
    """Whether any finding keeps Jobs from running there."""
    return any(one.verdict == "fail" for one in findings)


def judge_unread(by: str, why: str) -> Finding:
    """A worker that something else declares, which this operator cannot read: the worker was not asked."""
    fix = "somebody who may read it can check it; mirror worker list shows what the manager reports of it"
    return warn("declaration", f"declared by {by}, and not checked: {why}", fix)


def judge_dead(worker: str) -> Finding:
    """A worker that somebody has declared dead (D14)."""
    text = "it gets no new Jobs, and those recorded there start again elsewhere while it is unreachable"
    return warn("declared dead", text, f"to take that back: mirror worker forget {worker} --undo")


def judge_useless(by: str, why: str) -> Finding:
    """What declares a worker is gone, or leads nowhere."""
    return fail("declaration", f"{by}: {why}", f"whoever writes {by} has to correct it; its events say the same")


def renewed(worker: str, by: str, what: str) -> str:
    """How a worker gets other credentials: by its operator's command, or by whoever writes what declares it."""
    return f"whoever writes {by} has to correct it" if by else f"mirror worker add {worker} --context CONTEXT {what}"


def judge_unreachable(server: str, error: KubeError) -> Finding:
    """No connection: what failed first, and where to look. Of TLS and credentials nothing is known then."""
    what = describe(error)
    return fail("connection", f"{server}: {what}", first_fix(OF_CONNECTION, what))


def granting(by: str) -> str:
    """How the account of a worker that ``by`` declares gets its permissions."""
    return f"grant there what config/rbac/worker.yaml grants, to the account that {by} leads to"


def judge_tls(worker: str, error: KubeError, *, by: str = "") -> Finding:
    """A connection, and no TLS: whose certificate it is, or whether there is one."""
    what, again = describe(error), renewed(worker, by, "writes the current one")
    return fail("TLS", what, first_fix(_OF_TLS, what).format(again=again))


_OF_TLS = (
    ("does not speak TLS", "this port is not an API server's: check the address in the kubeconfig"),
    ("not yet valid", "compare the clocks of this machine and of the server: one of them is wrong"),
    ("has expired", "renew the API server's certificate (kubeadm certs renew)"),
    ("unknown authority", "the kubeconfig has the CA of another cluster, or the CA was replaced: {again}"),
    (
        "not valid for",
        "the kubeconfig has an address that is not in the certificate: {again}, or set tls-server-name",
    ),
    ("", "check that the kubeconfig has this server's address and the CA of its cluster"),
)


def judge_other_server(server: str, what: str) -> Finding:
    """Something else than Kubernetes answers there."""
    fix = "another program listens there, or a proxy in between: check the server's address in the kubeconfig"
    return fail("connection", f"{server} is not a Kubernetes API server: {what}", fix)


def judge_clock(ahead_seconds: float | None) -> Finding:
    """How the worker's clock differs from the one here; a Date header is good to half a second."""
    if ahead_seconds is None:
        return warn("clock", "the server sends no Date header", "check for a proxy that drops it")
    way = "ahead of" if ahead_seconds > 0 else "behind"
    text = f"{abs(ahead_seconds):.1f} s {way} this machine's"
    if abs(ahead_seconds) <= MOST_SKEW_SECONDS:
        return ok("clock", text)
    return warn("clock", text, "synchronize both with NTP: times of Jobs and the expiry of tokens depend on it")


def judge_latency(seconds: Sequence[float]) -> Finding:
    """The median of some requests, from here; the manager's way may be another."""
    middle = sorted(seconds)[len(seconds) // 2]
    text = f"{middle * 1000:.0f} ms from here (median of {len(seconds)})"
    if middle <= SLOW_SECONDS:
        return ok("latency", text)
    return warn("latency", text, "statuses are delayed by that much; check the network between the clusters")


def judge_token(worker: str, token: Token, *, has_token: bool, has_right: bool, now: datetime, by: str = "") -> Finding:
    """How long the token lasts, and whether somebody cares for the next; what ``by`` holds the manager never renews."""
    again = renewed(worker, by, "creates a new one")
    has_right = has_right and not by
    if not has_token:
        return ok("token", "not used: the kubeconfig has other credentials")
    if token.expires is None:
        return warn("token", "does not say when it expires", f"prefer one that does: {again}")
    left = token.expires - now
    text = f"expires at {token.expires:%Y-%m-%dT%H:%M:%SZ}, in {format_duration(max(0, int(left.total_seconds())))}"
    if token.has_ended(now):
        return fail("token", f"expired at {token.expires:%Y-%m-%dT%H:%M:%SZ}", again)
    if has_right:
        due = renew_at(worker, token)
        if due is not None and now > due + (token.expires - due) / 2:
            return warn(
                "token",
                f"{text}; it should have been renewed",
                "the events of its Secret show why not",
            )
        return ok("token", f"{text}; the manager renews it")
    if token.is_ending(now):
        if by:
            return warn(
                "token", f"{text}; the manager does not renew it", f"whoever writes {by} has to renew it in time"
            )
        return warn("token", f"{text}; it is not renewed", f"{again}, and the permission to renew it")
    return ok("token", text)


def judge_certificate(what: str, ends: datetime | None, now: datetime, fix: str) -> Finding:
    """How long a certificate is good."""
    if ends is None:
        return ok(what, "accepted; its end cannot be read")
    text = f"valid until {ends:%Y-%m-%dT%H:%M:%SZ}"
    if ends <= now:
        return fail(what, f"expired at {ends:%Y-%m-%dT%H:%M:%SZ}", fix)
    return warn(what, text, fix) if ends - now < ENDING else ok(what, text)


def judge_needed(
    worker: str, allowed: Mapping[Permission, bool], namespaces: Sequence[str], *, by: str = ""
) -> Finding:
    """What nothing works without."""
    missing = [str(right) for right, is_allowed in allowed.items() if not is_allowed]
    if missing:
        fix = f"mirror worker add {worker} --context CONTEXT, or kubectl apply -f config/rbac/worker.yaml there"
        if by:
            fix = granting(by)
        return fail("permissions", f"missing: {', '.join(missing[:12])}", fix)
    if namespaces:
        listed = ", ".join(sorted(namespaces))
        return warn(
            "permissions",
            f"all required permissions granted, in namespaces {listed} only",
            f"set in the settings of the manager: namespaces: [{listed}]",
        )
    return ok("permissions", "all required permissions granted")


def judge_optional(what: str, allowed: Mapping[Permission, bool]) -> Finding:
    """Judge permissions that only some settings need: missing ones are reported, and no failure."""
    missing = [str(right) for right, is_allowed in allowed.items() if not is_allowed]
    if not missing:
        return ok(f"optional: {what}", "allowed")
    return ok(f"optional: {what}", f"not granted, and not needed without it: {', '.join(missing[:6])}")


def judge_entry(worker: str, entry: Entry, seen: Sequence[Finding] | None = None) -> Finding:
    """What the manager itself says.

    Args:
        worker: its name.
        entry: what the manager has recorded of it.
        seen: what was found from here, if that was asked for.
    """
    if not entry.state:
        fix = "check that the manager runs in this namespace and is ready; if not, its log and /readyz say why"
        return warn("manager", "has not reported this worker yet", fix)
    if entry.state == State.LOST.value:
        fix = "see failed checks above; the manager retries automatically"
        if seen is not None and not has_failed(seen):
            fix = (
                "nothing fails from here: check the manager's way there, and what refuses watches; it retries by itself"
            )
        return fail("manager", f"lost the connection at {entry.lost_since or entry.since}: {entry.reason}", fix)
    if entry.reason:
        return warn("manager", f"{entry.state} since {entry.since}: {entry.reason}", "correct that annotation")
    return ok("manager", f"{entry.state} since {entry.since}")


def judge_namespaces(worker: str, seen: Mapping[str, str], *, may_create: bool, kubectl: str) -> Finding:
    """Where Jobs would be made: namespaces, and what was in the way of one that was only tried; empty for nothing."""
    if not seen:
        return ok("namespaces", "no Jobs yet that could be placed here")
    missing = sorted(name for name, why in seen.items() if why == MISSING)
    leaving = sorted(name for name, why in seen.items() if why == TERMINATING)
    refused = [f"{name}: {why}" for name, why in sorted(seen.items()) if why not in ("", MISSING, TERMINATING)]
    if refused:
        return fail(
            "namespaces",
            f"a Job would be rejected in {'; '.join(refused[:5])}",
            "check quotas and admission policies there",
        )
    if missing and may_create:
        fix = "nothing to do if the manager's setting workers.createNamespaces is true"
        return warn("namespaces", f"missing: {', '.join(missing[:20])}", fix)
    if missing:
        commands = f"kubectl{kubectl} create namespace {missing[0]}" + (" and so on" if len(missing) > 1 else "")
        return fail("namespaces", f"missing: {', '.join(missing[:20])}", commands)
    if leaving:
        fix = f"kubectl{kubectl} describe namespace {leaving[0]} says what it waits for; create it anew if Jobs need it"
        return warn("namespaces", f"being deleted: {', '.join(leaving[:20])}", fix)
    return ok("namespaces", f"Jobs can be created in {', '.join(sorted(seen)[:20])}")


MISSING = "missing"
"""Of a namespace: it does not exist."""
TERMINATING = "being deleted"
"""Of a namespace: somebody has deleted it, and it is not gone yet."""
