"""Client certificates of the management cluster's users: which authorities count, and whom a certificate names.

As every aggregated API server does it: the cluster publishes the authorities of its users' certificates in one
ConfigMap, and whoever may read that can authenticate them. ``http_services`` keeps ``ClientAuthorities`` running beside
``access``. Not here: TLS (``certificates``, ``x509``), and what somebody may (``access.reviews``).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import Forbidden, KubeError, NotFound, describe
from mirror.kube.requests import Rank
from mirror.kube.resources import CONFIGMAPS
from mirror.kube.tls import BadCertificate
from mirror.telemetry.logs import Log

NAMESPACE, CONFIGMAP, KEY = "kube-system", "extension-apiserver-authentication", "client-ca-file"
"""Where an API server publishes the authorities of its users' certificates."""
LOOK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class CertificateUser:
    """Whom a certificate names whose authority the TLS handshake has verified."""

    name: str
    groups: tuple[str, ...]
    ends: float
    """When it expires, in seconds since the epoch; a connection may outlive it."""


def user_named(certificate: Mapping[str, Any]) -> CertificateUser | None:
    """The user of a certificate as ``ssl`` shows a verified one: the last common name, of the organizations.

    None where it names nobody.
    """
    pairs = [pair for parts in certificate.get("subject", ()) for pair in parts]
    name = next((value for key, value in reversed(pairs) if key == "commonName"), "")
    groups = tuple(value for key, value in pairs if key == "organizationName")
    ends = certificate.get("notAfter")
    return CertificateUser(name, groups, ssl.cert_time_to_seconds(ends) if ends else 0.0) if name else None


class ClientAuthorities:
    """Keeps up to date which authorities' certificates are accepted."""

    def __init__(self, management: Client, accept: Callable[[bytes], None], *, log: Log) -> None:
        """Create it.

        Args:
            management: the cluster whose users they are.
            accept: gets the authorities (PEM; empty: none); raises ``BadCertificate`` for what does not load.
            log: where a missing permission is reported, once.
        """
        self._management = management
        self._accept = accept
        self._log = log
        self._trouble = ""

    async def keep(self) -> None:
        """Look at once and periodically, until cancelled; what cannot be read now leaves everything as it was."""
        while True:
            trouble = await self._look()
            if trouble and trouble != self._trouble:
                self._log.warning("client certificates not accepted", because=trouble)
            self._trouble = trouble
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> str:
        """Why no authorities are known; empty where there are some, or the cluster does not answer now."""
        request = requests.get(CONFIGMAPS, CONFIGMAP, namespace=NAMESPACE).in_line(Rank.LAST)
        try:
            found = (await self._management.send_object(request)).data_dict().get(KEY)
            authorities = found.encode() if isinstance(found, str) else b""
            self._accept(authorities)
        except BadCertificate as error:
            return f"{KEY} of ConfigMap {CONFIGMAP} {error}"
        except (Forbidden, NotFound) as error:
            self._accept(b"")
            return f"ConfigMap {CONFIGMAP} in {NAMESPACE} (config/rbac/access.yaml): {describe(error)}"
        except KubeError:
            return self._trouble
        return "" if authorities else f"ConfigMap {CONFIGMAP} has no {KEY}"
