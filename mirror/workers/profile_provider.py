"""Workers that ClusterProfiles declare: where the API is served, profiles are watched, and their Secrets read.

Whether it is served is asked once a minute as long as it is not. Profiles may name any Secret, so those are read by
name, when a profile changes and every half minute: a watch would read all others, too. Used by ``registry``. What
profiles and Secrets say is ``cluster_profiles``'.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import msgspec

from mirror.kube import requests
from mirror.kube.amounts import MOST_SMALL_BYTES
from mirror.kube.client import Client
from mirror.kube.errors import Forbidden, KubeError, NotFound, NotServed, PageNotFound, describe, refusal_of
from mirror.kube.kubeconfig import KubeconfigRefused
from mirror.kube.objects import JUNK, Object
from mirror.kube.resources import SECRETS
from mirror.kube.watch import list_pages
from mirror.model.text import clean
from mirror.runtime.informer import Change, Filter, Informer, InformerHooks, Scope
from mirror.runtime.informers import Informers
from mirror.runtime.store import Name, Store, name_of
from mirror.settings.schema import ClusterProfiles
from mirror.telemetry.logs import Log
from mirror.workers.cluster_profiles import (
    CLUSTER_PROFILES,
    OCM,
    OCM_SELECTOR,
    Access,
    BadProfile,
    SecretRef,
    access_of,
    choose_ocm_secret,
    credentials_of,
    declared_by,
    kubeconfig_of,
    reduced_profile,
)
from mirror.workers.declarations import Key, Report

SERVED_AGAIN_SECONDS = 60.0
READ_AGAIN_SECONDS = 30.0
MOST_PROFILES = 1000
MOST_READS = 8
"""At a time."""
_NOT_SERVED = (NotFound, NotServed, PageNotFound)


class _Resource(msgspec.Struct):
    name: str = ""


class _Discovered(msgspec.Struct):
    resources: list[_Resource] = msgspec.field(default_factory=list)


class _NotServedAnyMore(Exception):
    """The CustomResourceDefinition is gone."""


class ProfileProvider:
    """The profiles of some namespaces. Invariant: ``_found`` has what was read for profiles in the store only."""

    title = "cluster profiles"

    def __init__(
        self,
        management: Client,
        settings: ClusterProfiles,
        own_namespace: str,
        *,
        rank: int,
        report: Report,
        log: Log,
    ) -> None:
        self._management = management
        self._settings = settings
        self._own_namespace = own_namespace
        self._rank = rank
        self._report = report
        self._log = log
        self._store = Store()
        self._found: dict[Name, tuple[Access, bytes]] = {}
        """The kubeconfig that was put together, and for what."""
        self._to_read: set[Name] = set()
        self._poke = asyncio.Event()
        self._gone = asyncio.Event()
        self._synced = asyncio.Event()
        self._tried = asyncio.Event()
        self._refused: dict[str, str] = {}
        self._informers = Informers(
            {
                f"{self.title} {namespace}": Informer(
                    Scope(CLUSTER_PROFILES, namespace),
                    self._store,
                    client=lambda: management,
                    hooks=InformerHooks(
                        self._on_change,
                        on_trouble=partial(self._on_trouble, namespace),
                        on_healthy=partial(self._on_listed, namespace),
                    ),
                    wanted=Filter(accept=self._accept, keep=reduced_profile),
                )
                for namespace in settings.namespaces
            },
            log=log,
        )

    @property
    def refused_because(self) -> str:
        return "; ".join(self._refused.values())

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    async def wait_until_synced(self) -> None:
        await self._synced.wait()

    async def wait_until_tried(self) -> None:
        await self._tried.wait()

    def list_anew(self) -> None:
        if len(self._store):
            self._synced.clear()
            self._tried.clear()
            self._informers.list_anew()
            self._poke.set()

    async def run(self) -> None:
        """Report, until cancelled; where the API is not served, nothing happens."""
        while True:
            if await self._is_served():
                self._log.info("cluster profiles are served", namespaces=self._settings.namespaces)
                await self._follow()
                self._log.info("cluster profiles are not served any more")
                for profile in self._store:
                    self._on_change(self._store.remove(name_of(profile)), None, Change.MISSING)
            self._synced.set()
            self._tried.set()
            await asyncio.sleep(SERVED_AGAIN_SECONDS)

    async def _is_served(self) -> bool:
        path = f"/apis/{CLUSTER_PROFILES.group}/{CLUSTER_PROFILES.version}"
        try:
            answer = await self._management.send(requests.Request("get", "GET", path, most_bytes=MOST_SMALL_BYTES))
            found = msgspec.json.decode(answer, type=_Discovered)
        except _NOT_SERVED:
            return False
        except (KubeError, *JUNK) as error:
            self._log.debug("whether cluster profiles are served is not known", error=error)
            return False
        return any(one.name == CLUSTER_PROFILES.plural for one in found.resources)

    async def _follow(self) -> None:
        """Watch profiles until they are not served any more."""
        self._gone.clear()
        try:
            async with asyncio.TaskGroup() as scope:
                scope.create_task(self._informers.run(), name="watch cluster profiles")
                scope.create_task(self._read_secrets(), name="read secrets of cluster profiles")
                await self._gone.wait()
                raise _NotServedAnyMore
        except* _NotServedAnyMore:
            for informer in self._informers:
                informer.expire()

    def _accept(self, found: Object) -> bool:
        if len(self._store) < MOST_PROFILES or self._store.get(*name_of(found)) is not None:
            return True
        where = "/".join(name_of(found))
        self._log.warning("too many cluster profiles", left_out=where, most=MOST_PROFILES)
        return False

    def _on_trouble(self, namespace: str, error: KubeError) -> None:
        if isinstance(error, _NOT_SERVED):
            self._gone.set()
            return
        because = refusal_of(error)
        if because and because != self._refused.get(namespace):
            self._refused[namespace] = because
            self._log.warning("workers not listed", source=self.title, namespace=namespace, because=because)
        self._tried.set()

    def _on_listed(self, namespace: str) -> None:
        self._refused.pop(namespace, None)
        self._poke.set()

    # -- profiles and their Secrets --------------------------------------------------------------------------------

    def _on_change(self, old: Object | None, new: Object | None, change: Change) -> None:
        profile = new or old
        if profile is None:
            return
        name = name_of(profile)
        if new is None:
            self._found.pop(name, None)
            self._to_read.discard(name)
            self._report(Key(self._rank, *name), None)
            return
        known = self._found.get(name)
        try:
            access = access_of(new, own_namespace=self._own_namespace)
        except BadProfile as error:
            self._found.pop(name, None)
            self._declare(new, None, str(error))
            return
        if known is not None and known[0] == access:
            self._declare(new, known[1])
        else:
            self._to_read.add(name)
            self._poke.set()

    async def _read_secrets(self) -> None:
        """Those of profiles that have changed at once, and all of them now and then."""
        loop, is_due, due = asyncio.get_running_loop(), True, 0.0
        while True:
            if is_due:
                self._to_read.update(name_of(profile) for profile in self._store)
                due = loop.time() + READ_AGAIN_SECONDS
            self._poke.clear()
            names, self._to_read = self._to_read, set()
            limit = asyncio.Semaphore(MOST_READS)
            async with asyncio.TaskGroup() as scope:
                for name in names:
                    scope.create_task(self._read(name, limit), name=f"read secret of cluster profile {name[1]}")
            if self._informers.is_synced and not self._to_read:
                self._synced.set()
                self._tried.set()
            try:
                async with asyncio.timeout_at(due):
                    await self._poke.wait()
                is_due = False
            except TimeoutError:
                is_due = True

    async def _read(self, name: Name, limit: asyncio.Semaphore) -> None:
        """Put a profile's kubeconfig together; what is only unreachable changes nothing that is known."""
        profile = self._store.get(*name)
        if profile is None:
            return
        try:
            access = access_of(profile, own_namespace=self._own_namespace)
            async with limit:
                secret = await self._secret(access.credentials)
            problem, kubeconfig = "", kubeconfig_of(access, credentials_of(secret, access.credentials))
        except NotFound:
            problem, kubeconfig = f"Secret {_named(access.credentials)} not found", None
        except Forbidden as error:
            problem = f"missing permission to read Secret {_named(access.credentials)}: {error.brief}"
            kubeconfig = None
        except KubeconfigRefused as error:
            problem, kubeconfig = f"Secret {_named(access.credentials)}: {error}", None
        except BadProfile as error:
            problem, kubeconfig = str(error), None
        except KubeError as error:
            known = self._found.get(name)
            problem = f"Secret {_named(access.credentials)} could not be read: {describe(error)}"
            kubeconfig = known[1] if known is not None and known[0] == access else None
        now = self._store.get(*name)
        if now is None or now.status != profile.status:
            return  # it was changed meanwhile, and is read again
        if kubeconfig is None:
            self._found.pop(name, None)
        else:
            self._found[name] = (access, kubeconfig)
        self._declare(now, kubeconfig, problem)

    async def _secret(self, ref: SecretRef) -> Object:
        if ref.provider != OCM:
            return await self._management.send_object(requests.get(SECRETS, ref.name, namespace=ref.namespace))
        pages = list_pages(self._management, SECRETS, namespace=ref.namespace, label_selector=OCM_SELECTOR)
        secrets = [one async for page in pages for one in page.objects]
        return choose_ocm_secret(secrets, ref.name, self._settings.managed_service_account)

    def _declare(self, profile: Object, kubeconfig: bytes | None, problem: str = "") -> None:
        declared = declared_by(profile, kubeconfig, clean(problem, longest=400))
        account = self._settings.managed_service_account
        self._report(Key(self._rank, *name_of(profile)), replace(declared, account=account))


def _named(ref: SecretRef) -> str:
    return f"{ref.namespace}/{ref.name}"
