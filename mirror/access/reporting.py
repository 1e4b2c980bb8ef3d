"""Publishes the address of ``access``: the ConfigMap ``jobmirror-access``, with its URL and the authority to trust.

The kinds that are mirrored are in it, too, so that users' commands know them. Written by the leader when it is not as
it should be. Who may read it is up to ``config/rbac/access.yaml``: everybody who is known to the cluster. Without
``access.url`` nothing is written: we do not know how users reach us.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import AlreadyExists, KubeError, NotFound
from mirror.kube.requests import Rank
from mirror.kube.resources import CONFIGMAPS
from mirror.model import names
from mirror.telemetry.logs import Log

LOOK_SECONDS = 15.0
FIRST_LOOK_SECONDS = 1.0
REWRITE_SECONDS = 600.0
"""It may have been changed or deleted by somebody."""
AUTHORITY_KEY, URL_KEY, KINDS_KEY = "ca.crt", "url", "kinds"


@dataclass(frozen=True, slots=True)
class Told:
    """The content of the ConfigMap that users read."""

    url: str
    """Empty: we do not know how users reach us, and tell nothing."""
    authority: bytes = b""
    """PEM; empty: the system's authorities."""
    kinds: str = "[]"
    """As ``kinds.declared.published`` has them."""


class AddressPublisher:
    """Keeps the ConfigMap as it should be."""

    def __init__(
        self,
        management: Client,
        namespace: str,
        told: Callable[[], Told],
        *,
        is_leading: Callable[[], bool],
        log: Log,
    ) -> None:
        self._management = management
        self._namespace = namespace
        self._told = told
        self._is_leading = is_leading
        self._log = log

    async def run(self) -> None:
        """Look periodically, until cancelled; a failure is retried with the next look."""
        written: dict[str, str] | None = None
        ends_at, loop = 0.0, asyncio.get_running_loop()
        while True:
            wanted, pause = self._wanted(), LOOK_SECONDS
            if not self._is_leading():
                written, pause = None, FIRST_LOOK_SECONDS  # the leader may write something else in the meantime
            elif wanted[URL_KEY] and (written != wanted or loop.time() >= ends_at):
                try:
                    await self._write(wanted)
                    written, ends_at = wanted, loop.time() + REWRITE_SECONDS
                except KubeError as error:
                    self._log.warning("access ConfigMap not written", error=error)
            await asyncio.sleep(pause)

    def _wanted(self) -> dict[str, str]:
        told = self._told()
        authority = told.authority.decode("ascii", errors="replace")
        data = {URL_KEY: told.url, KINDS_KEY: told.kinds}
        return {**data, **({AUTHORITY_KEY: authority} if authority else {})}

    async def _write(self, wanted: dict[str, str]) -> None:
        name, namespace = names.ACCESS_CONFIGMAP, self._namespace
        data: dict[str, str | None] = {AUTHORITY_KEY: None, **wanted}
        patch = requests.merge_patch(CONFIGMAPS, name, {"data": data}, namespace=namespace).in_line(Rank.LAST)
        try:
            await self._management.send(patch)
        except NotFound:
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace},
                "data": wanted,
            }
            try:
                await self._management.send(requests.create(CONFIGMAPS, body, namespace=namespace).in_line(Rank.LAST))
            except AlreadyExists:
                await self._management.send(patch)
        self._log.debug("access ConfigMap written", url=wanted[URL_KEY])
