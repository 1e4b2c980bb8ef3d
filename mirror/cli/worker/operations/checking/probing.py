"""Asks a worker, with the manager's own credentials, whether it would do; ``judging`` says what that means.

Nothing is changed anywhere: rights are asked for by access reviews, Jobs are only tried (``dryRun``). A worker is
hostile until its answers are cleaned, and slow until they are there: every request has its deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cryptography import x509

from mirror.cli.worker.operations import roles
from mirror.cli.worker.operations.checking import judging
from mirror.cli.worker.operations.checking.judging import Finding, fail, ok, warn
from mirror.cli.worker.operations.checking.kinds import examine_worker
from mirror.cli.worker.operations.checking.reviewing import DEADLINE_SECONDS, allowed
from mirror.cli.worker.operations.enrolment import describe_refusal
from mirror.cli.worker.operations.sites import dry_run
from mirror.kinds import registry
from mirror.kinds.base import Kind
from mirror.kinds.registry import Kinds
from mirror.kube import requests
from mirror.kube.auth import worker_credentials
from mirror.kube.client import Client
from mirror.kube.credentials import Endpoint
from mirror.kube.errors import ApiError, BadAnswer, Forbidden, KubeError, NotFound, NotServed, Unauthorized, describe
from mirror.kube.handshake import NoTls, certificate_end
from mirror.kube.kubeconfig import Kubeconfig, KubeconfigRefused, check_kubeconfig
from mirror.kube.limits import Limiter
from mirror.kube.permissions import Permission
from mirror.kube.resources import ACCESS_REVIEWS
from mirror.workers.connection import State
from mirror.workers.inventory import IdentityRejected, WorkerInventory
from mirror.workers.probes import OLDEST_MINOR, NotKubernetes, Unsupported, check_version, cluster_uid
from mirror.workers.spec import WorkerSpec
from mirror.workers.tokens import Token, read_token

LOOPBACK: Mapping[str, bool] = {"loopback": True}
LATENCY_REQUESTS = 5
MOST_NAMESPACES = 20


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of the management cluster."""

    namespace: str
    """The manager's."""
    management_uid: str
    inventory: WorkerInventory
    sources: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Namespaces where Jobs of ours are, and the names of their kinds there."""
    accepts: Callable[[WorkerSpec, str], bool] = lambda spec, namespace: True
    """Whether placement gives a worker Jobs of this namespace (D18)."""
    allow: Mapping[str, bool] = field(default_factory=dict)
    """What the manager's setting ``workers.allow`` opts in to."""
    kinds: Kinds = field(default_factory=lambda: registry.BUILT_IN)
    """What the manager mirrors."""


async def examine(spec: WorkerSpec, context: Context, *, by: str = "") -> list[Finding]:
    """Everything about one worker, in the order in which things depend on each other.

    Args:
        spec: what registers it, as it was read.
        context: the management cluster.
        by: what declares the worker, as text; empty: a Secret of the manager's namespace registers it.
    """
    name = spec.name
    findings = [_judge_annotations(spec, by)]
    if spec.mistakes:
        fix = f"correct the name on {by or f'Secret {name}'}: nothing follows it as it is"
        findings.append(warn("annotations", "; ".join(spec.mistakes), fix))
    # A manager that is connected through a loopback address has opted in to it, and runs where it leads.
    is_connected = context.inventory.entry(name).state == State.CONNECTED.value
    allow = {**LOOPBACK, **context.allow} if is_connected else context.allow
    try:
        kubeconfig = check_kubeconfig(spec.kubeconfig, allow)
        findings.append(ok("kubeconfig", f"accepted; the server is {kubeconfig.server}"))
        async with connected(name, kubeconfig, allow) as (client, endpoint):
            findings += await _examine_live(_Target(spec, by), kubeconfig, client, endpoint, context)
    except KubeconfigRefused as error:
        findings.append(fail("kubeconfig", f"refused: {describe_refusal(error)}", error.fix))
        # What is allowed here may be otherwise there.
        heard = [judging.judge_entry(name, context.inventory.entry(name))]
        return findings + [one for one in heard if context.inventory.entry(name).reason]
    findings.append(judging.judge_entry(name, context.inventory.entry(name), findings))
    return findings


@asynccontextmanager
async def connected(
    name: str, kubeconfig: Kubeconfig, allow: Mapping[str, bool]
) -> AsyncIterator[tuple[Client, Endpoint]]:
    """Connect to the worker as the manager does, for one command.

    Raises:
        KubeconfigRefused: the kubeconfig holds what is not allowed.
    """
    credentials = await worker_credentials(kubeconfig, allow)
    client = Client(name, credentials, Limiter(0, 1, asyncio.get_running_loop().time))
    try:
        yield client, credentials.endpoint
    finally:
        await client.close()


@dataclass(frozen=True, slots=True)
class _Target:
    """Which worker is asked."""

    spec: WorkerSpec
    by: str
    """What declares it; empty: its own Secret."""


async def _examine_live(
    target: _Target, kubeconfig: Kubeconfig, client: Client, endpoint: Endpoint, context: Context
) -> list[Finding]:
    """What has to be asked for. After the first step that fails, what depends on it is left out."""
    spec, by = target.spec, target.by
    token = read_token(kubeconfig.user.token) if kubeconfig.user.token else Token()
    now = datetime.now(UTC)

    def judged_token(*, has_right: bool) -> Finding:
        has_token = bool(kubeconfig.user.token)
        return judging.judge_token(spec.name, token, has_token=has_token, has_right=has_right, now=now, by=by)

    findings = [
        *await _look_at_certificate(target, endpoint, now),
        *_judge_client_certificate(target, kubeconfig, now),
    ]
    if findings[0].verdict == "fail":
        # Only what has expired by itself may be the cause; the rest could not be asked for.
        return [findings[0], *(one for one in findings[1:] if one.verdict == "fail")]
    try:
        version = await check_version(client, OLDEST_MINOR)
        findings.append(ok("version", f"Kubernetes {version}"))
        findings.append(_judge_identity(target, await cluster_uid(client), context))
    except NotKubernetes as error:
        return [*findings, judging.judge_other_server(endpoint.server, str(error))]
    except Unsupported as error:
        return [*findings, fail("version", str(error), "upgrade the worker's control plane")]
    except Unauthorized as error:
        credentials = [one for one in (judged_token(has_right=False),) if one.verdict == "fail"]
        # A clock that is wrong makes a good token look expired, or not valid yet.
        clock = [one for one in (judging.judge_clock(client.clock_offset_seconds),) if one.verdict != "ok"]
        return [*findings, _judge_connection(target, endpoint.server, error), *credentials, *clock]
    except KubeError as error:
        return [*findings, _judge_connection(target, endpoint.server, error)]
    findings.append(judging.judge_clock(client.clock_offset_seconds))
    findings.append(judging.judge_latency(await _latencies(client)))
    optional, rights, namespaces = await _rights(target, client, token, context)
    can = {what: all(may.values()) for what, may in optional.items()}
    renewal = next(is_allowed for what, is_allowed in can.items() if what.startswith("token"))
    creation = next(is_allowed for what, is_allowed in can.items() if what.startswith("creating"))
    findings += [judged_token(has_right=renewal and token.is_renewable), rights]
    of_kinds = await examine_worker(client, spec.name, context.kinds, namespaces, by=by)
    usable = {one.what for one in of_kinds if one.verdict == "ok"}
    findings += of_kinds
    findings += [judging.judge_optional(what, may) for what, may in optional.items()]
    if rights.verdict == "fail":
        return findings  # a Job would be refused everywhere, for that reason
    served = [kind for kind in context.kinds if kind is context.kinds.default or f"kind {kind.name}" in usable]
    wanted = _namespaces(spec, context)
    tried = {there: await _try_kinds(client, there, served, names) for there, names in wanted.items()}
    return [*findings, judging.judge_namespaces(spec.name, tried, may_create=creation, kubectl=" --context CONTEXT")]


def _judge_annotations(spec: WorkerSpec, by: str) -> Finding:
    what = "declaration" if by else "secret"
    if spec.problems:
        return fail(
            what,
            "; ".join(map(str, spec.problems)),
            "correct the annotation; until then the worker is unschedulable",
        )
    marks = [word for word, is_so in (("cordoned", spec.cordoned), ("draining", spec.draining)) if is_so]
    if marks:
        return warn(what, f"unschedulable: {' and '.join(marks)}", f"mirror worker uncordon {spec.name}")
    return ok(what, f"by {by}, well-formed" if by else "well-formed")


async def _look_at_certificate(target: _Target, endpoint: Endpoint, now: datetime) -> list[Finding]:
    """How far one gets without a request; the first that fails alone."""
    try:
        ends = await certificate_end(endpoint, deadline_seconds=DEADLINE_SECONDS)
    except NoTls as error:
        return [judging.judge_tls(target.spec.name, error, by=target.by)]
    except KubeError as error:
        return [judging.judge_unreachable(endpoint.server, error)]
    if endpoint.tls is None or endpoint.proxy is not None:
        return [ok("TLS", "not checked: no TLS, or a proxy is used")]
    return [judging.judge_certificate("TLS", ends, now, "renew the API server's certificate (kubeadm certs renew)")]


def _judge_client_certificate(target: _Target, kubeconfig: Kubeconfig, now: datetime) -> list[Finding]:
    if not kubeconfig.user.certificate_pem:
        return []
    ends = x509.load_pem_x509_certificate(kubeconfig.user.certificate_pem).not_valid_after_utc
    again = judging.renewed(target.spec.name, target.by, "writes a token instead")
    fix = f"the manager renews tokens, not certificates: {again}"
    return [judging.judge_certificate("client certificate", ends, now, fix)]


def _judge_connection(target: _Target, server: str, error: KubeError) -> Finding:
    name, by = target.spec.name, target.by
    match error:
        case Unauthorized():
            again = judging.renewed(name, by, "creates new ones")
            return fail("connection", "credentials rejected (401 Unauthorized)", again)
        case Forbidden():
            grant = judging.granting(by) if by else f"mirror worker add {name} --context CONTEXT grants them"
            return fail("permissions", "missing: get namespaces kube-system", grant)
        case ApiError():
            proxy = "see what stands before its API server: a load balancer without a backend answers so"
            fix = proxy if error.is_of_proxy else "see the log of its API server"
            return fail("connection", f"{server} answered {describe(error)}", fix)
        case BadAnswer():
            return judging.judge_other_server(server, describe(error))
    return judging.judge_unreachable(server, error)


def _judge_identity(target: _Target, uid: str, context: Context) -> Finding:
    spec, by = target.spec, target.by
    has_prefix = bool(spec.namespace_prefix)
    try:
        context.inventory.check_identity(spec.name, uid, management_uid=context.management_uid, has_prefix=has_prefix)
    except IdentityRejected as error:
        other = context.inventory.registered_as(spec.name, uid)
        name = other if other and context.inventory.is_orphan(other) else "a name of its own"
        fix = f"mirror worker remove {spec.name}, then add it under {name}"
        return fail("identity", str(error), f"declare it under {name}, instead of by {by}" if by else fix)
    return ok("identity", f"cluster {uid}")


async def _latencies(client: Client) -> list[float]:
    taken = []
    for _ in range(LATENCY_REQUESTS):
        began = time.perf_counter()
        try:
            await cluster_uid(client)
        except KubeError:
            taken.append(DEADLINE_SECONDS)
            break
        taken.append(time.perf_counter() - began)
    return taken


async def _rights(
    target: _Target, client: Client, token: Token, context: Context
) -> tuple[dict[str, dict[Permission, bool]], Finding, Sequence[str]]:
    """Of the optional ones, which are there; the verdict about what is needed; where, if not everywhere."""
    spec = target.spec
    namespaces: Sequence[str] = ()
    needed = await _may(client, roles.needed())
    if not all(needed.values()) and (named := _named_namespaces(spec)):
        narrower = await _may(client, roles.needed(named))
        if all(narrower.values()):
            namespaces, needed = named, narrower
    groups = roles.optional(token.namespace or context.namespace, namespaces)
    optional = {what: await _may(client, rights) for what, rights in groups.items()}
    return optional, judging.judge_needed(spec.name, needed, namespaces, by=target.by), namespaces


def _named_namespaces(spec: WorkerSpec) -> list[str]:
    """Those that the worker accepts by name, as they are called there."""
    return [spec.namespace_prefix + one for one in spec.namespaces if not set(one) & set("*?[]!")]


async def _may(client: Client, rights: Sequence[Permission]) -> dict[Permission, bool]:
    """Which of these we have; a question that is not answered counts as no."""
    return {right: is_allowed is True for right, is_allowed in (await allowed(client, ACCESS_REVIEWS, rights)).items()}


def _namespaces(spec: WorkerSpec, context: Context) -> dict[str, Collection[str]]:
    """Where this worker would get Jobs of the sources that there are, as it is called there, and of which kinds."""
    accepted = sorted(one for one in context.sources if context.accepts(spec, one))
    return {spec.namespace_prefix + one: context.sources[one] for one in accepted[:MOST_NAMESPACES]}


async def _try_kinds(client: Client, namespace: str, kinds: Iterable[Kind], names: Collection[str]) -> str:
    """What is in the way of the first of these kinds that would be rejected there; empty for nothing."""
    for kind in kinds:
        why = await _try(client, kind, namespace) if kind.name in names else ""
        if why:
            is_plain = why in (judging.MISSING, judging.TERMINATING) or kind is registry.BUILT_IN.default
            return why if is_plain else f"{kind.name}: {why}"
    return ""


async def _try(client: Client, kind: Kind, namespace: str) -> str:
    """What is in the way of an object of this kind there; empty for nothing. None is made."""
    body = {**kind.dry_run_body(), "metadata": {"generateName": "jobmirror-check-"}}
    request = dry_run(requests.create(kind.resource, body, namespace=namespace))
    request = replace(request, deadline_seconds=DEADLINE_SECONDS)
    try:
        await client.send(request)
    except NotFound:
        return judging.MISSING
    except NotServed:
        return f"{registry.resource_name(kind)} is not served"
    except ApiError as error:
        return judging.TERMINATING if error.is_of_terminating_namespace else error.brief or error.reason
    except KubeError as error:
        return describe(error)
    return ""
