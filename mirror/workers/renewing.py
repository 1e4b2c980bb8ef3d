"""Renews the tokens in workers' kubeconfigs before they end (setting ``workers.renewTokens``).

A worker is asked for a new token of our own account there; it is tried, and takes the old one's place in the Secret,
from which the registry takes it like any change. Only the leader does this. Nothing depends on it while the old token
is good: what cannot be renewed is told once, as an event on the Secret, and tried again. What tokens say, and when they
are due, is ``tokens``. Called by ``app``.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import ApiError, BadAnswer, Forbidden, KubeError, Unreachable
from mirror.kube.objects import JUNK, Object
from mirror.kube.resources import SECRETS, SERVICE_ACCOUNTS
from mirror.model import names
from mirror.model.text import clean
from mirror.runtime.backoff import Backoff
from mirror.runtime.environment import Environment
from mirror.workers.probes import cluster_uid
from mirror.workers.registry import Registry
from mirror.workers.spec import BadSecret, read_kubeconfig
from mirror.workers.tokens import (
    Token,
    UselessToken,
    bearer_of,
    check_renewed,
    read_token,
    renew_at,
    seconds_to_ask_for,
    with_token,
)
from mirror.workers.worker import Worker

LOOK_SECONDS = 30.0
RENEWAL_SECONDS = 45.0
"""The longest that one renewal takes; all that are due go on side by side."""
LEAST_GAP = timedelta(minutes=5)
"""Between two renewals for one worker: less than what the shortest token gives, whatever a worker says of its own."""
AGAIN = Backoff(first=30.0, most=1800.0, jitter=0.2)
PATIENT_FAILURES = 3
REASON = "TokenExpiring"


class _Status(msgspec.Struct):
    token: str = ""


class _Answer(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why the token of a worker was not renewed so far."""

    expires: datetime | None
    because: str
    failures: int
    again_at: datetime
    is_refused: bool

    @property
    def is_lasting(self) -> bool:
        """Whether somebody should know: one lost answer is nobody's business."""
        return self.is_refused or self.failures >= PATIENT_FAILURES


class Renewer:
    """Invariant: what is remembered is of workers that exist; ``_troubles`` and ``_told`` of the tokens they have."""

    def __init__(
        self,
        management: Client,
        registry: Registry,
        *,
        is_enabled: bool,
        is_leading: Callable[[], bool],
        warn: Callable[[Object, str, str], None],
        environment: Environment,
    ) -> None:
        """``warn``: called with a worker's Secret, a reason and a message."""
        self._management = management
        self._registry = registry
        self._is_enabled = is_enabled
        self._is_leading = is_leading
        self._warn = warn
        self._clock = environment.clock
        self._log = environment.log
        self._metrics = environment.metrics
        self._chance = random.Random()
        self._troubles: dict[str, _Trouble] = {}
        self._told: dict[str, datetime | None] = {}
        self._renewed: dict[str, datetime] = {}
        """When it was done last."""

    async def run(self) -> None:
        """Look at all tokens twice a minute, until cancelled."""
        while True:
            if self._is_leading():
                await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Renew what is due, and say what ends without being renewed."""
        now, workers = self._clock.now(), dict(self._registry.workers)
        for remembered in (self._troubles, self._told, self._renewed):
            for name in remembered.keys() - workers.keys():
                del remembered[name]
        async with asyncio.TaskGroup() as scope:
            for worker in workers.values():
                if self._is_due(worker, now):
                    scope.create_task(self._renew(worker), name=f"renew token of {worker.name}")
        for worker in workers.values():
            self._say(worker)

    def _is_due(self, worker: Worker, now: datetime) -> bool:
        due = renew_at(worker.name, worker.token)
        if not self._is_enabled or worker.spec is None or due is None or now < due:
            return False
        if self._registry.secret_of(worker.name) is None:
            return False  # what somebody else has declared is not ours to write
        renewed = self._renewed.get(worker.name)
        if renewed is not None and renewed <= now < renewed + LEAST_GAP:
            return False
        trouble = self._troubles.get(worker.name)
        return trouble is None or trouble.expires != worker.token.expires or now >= trouble.again_at

    async def _renew(self, worker: Worker) -> None:
        """One attempt; its failure is remembered, and hurts nobody else."""
        token = worker.token
        try:
            async with asyncio.timeout(RENEWAL_SECONDS):
                new = await self._store_new(worker, token)
        except (KubeError, UselessToken, BadSecret, TimeoutError) as error:
            self._failed(worker, token, error)
            return
        self._troubles.pop(worker.name, None)
        self._renewed[worker.name] = self._clock.now()
        self._metrics.on_token_renewal(worker.name, "renewed")
        self._log.info("token renewed", worker=worker.name, expires=new.expires)

    async def _store_new(self, worker: Worker, token: Token) -> Token:
        """Ask, try, store; gives what the new token says."""
        secret = self._registry.secret_of(worker.name)
        if secret is None:
            raise Unreachable("its Secret was deleted")
        kubeconfig = read_kubeconfig(secret)
        if read_token(bearer_of(kubeconfig)) != token:
            raise UselessToken("its kubeconfig is being changed")
        text = await _ask(worker, token)
        new = check_renewed(token, text, self._clock.now())
        changed = with_token(kubeconfig, text)
        await self._try(worker, changed)
        await self._write(secret, changed)
        return new

    async def _try(self, worker: Worker, kubeconfig: bytes) -> None:
        """The worker must take it before anybody depends on it."""
        client = await self._registry.connect_with(worker.name, kubeconfig)
        try:
            if await cluster_uid(client) != worker.uid:
                raise UselessToken("the new token leads to another cluster")
        finally:
            await client.close()

    async def _write(self, secret: Object, kubeconfig: bytes) -> None:
        """Only into the very Secret that was read: who changed it meanwhile knows better."""
        meta = secret.metadata
        body = {
            "metadata": {"resourceVersion": meta.resource_version, "uid": meta.uid},
            "data": {names.KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()},
        }
        try:
            await self._management.send(requests.merge_patch(SECRETS, meta.name, body, namespace=meta.namespace))
        except KubeError as error:
            error.add_note("storing the new token")
            raise

    def _failed(self, worker: Worker, token: Token, error: Exception) -> None:
        before = self._troubles.get(worker.name)
        failures = before.failures + 1 if before is not None and before.expires == token.expires else 1
        again_at = self._clock.now() + timedelta(seconds=AGAIN.delay(failures, self._chance))
        because, is_refused = _because(error), isinstance(error, Forbidden)
        self._troubles[worker.name] = _Trouble(token.expires, because, failures, again_at, is_refused)
        self._metrics.on_token_renewal(worker.name, "refused" if is_refused else "failed")
        self._log.warning("token not renewed", worker=worker.name, because=because, again_at=again_at)

    def _say(self, worker: Worker) -> None:
        """Once for each token, when its end is near and nothing has been done about it."""
        token, now = worker.token, self._clock.now()
        if token.expires is None or not token.is_ending(now):
            return
        why = self._why_not(worker, now)
        secret = self._registry.secret_of(worker.name)
        if not why or secret is None or self._told.get(worker.name) == token.expires:
            return
        self._told[worker.name] = token.expires
        expires = "expired" if token.has_ended(now) else "expires"
        text = f"the token {expires} at {token.expires:%Y-%m-%dT%H:%M:%SZ}, and was not renewed: {why}"
        self._warn(secret, REASON, f"{text}. A new one: mirror worker add {worker.name} --context CONTEXT")

    def _why_not(self, worker: Worker, now: datetime) -> str:
        """Why it cannot be renewed; empty while it can, or has not been tried."""
        if not self._is_enabled:
            return "workers.renewTokens is false"
        if not worker.token.is_renewable:
            return "it is not a service account's"
        trouble = self._troubles.get(worker.name)
        if trouble is not None and trouble.expires == worker.token.expires:
            return trouble.because if trouble.is_lasting or worker.token.has_ended(now) else ""
        return "it is too late for that" if worker.token.has_ended(now) else ""


async def _ask(worker: Worker, token: Token) -> str:
    """A new token of the same account, as the worker gives it."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds_to_ask_for(token)},
    }
    request = requests.create_for(SERVICE_ACCOUNTS, token.account, "token", body, namespace=token.namespace)
    try:
        answer = await worker.client.send(request)
    except KubeError as error:
        error.add_note("asking the worker for a new token")
        raise
    try:
        return msgspec.json.decode(answer, type=_Answer).status.token
    except JUNK:
        raise BadAnswer("the answer holds no token") from None


def _because(error: Exception) -> str:
    """In words that may be shown: an answer's own text could quote a token."""
    doing = ": ".join(reversed(getattr(error, "__notes__", ())))
    match error:
        case Forbidden():
            what = "missing permission (config/rbac/worker-tokens.yaml, config/rbac/management-tokens.yaml)"
        case UselessToken() | BadSecret() | Unreachable():
            what = str(error)
        case TimeoutError():
            what = f"no end within {RENEWAL_SECONDS:g} s"
        case _:
            what = _without_text(error)
    return f"{doing}: {what}" if doing else what


def _without_text(error: Exception) -> str:
    match error:
        case ApiError():
            return f"the server answered {error.code} {clean(error.reason, longest=64)}".rstrip()
        case BadAnswer():
            return "the server's response cannot be read"
        case KubeError():
            return str(error)  # of a connection: nothing of a server's
    return "unexpected error, see the log"
