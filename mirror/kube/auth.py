"""From a kubeconfig, or the pod we run in, to ``Credentials``: the only module that knows kubernetes_asyncio.

Used by ``connect``. What is taken from kubernetes_asyncio is how kubeconfig files are found and merged, how a user's static
credentials become a header, the in-cluster convention, and Google's provider. What is not (certificates, token files,
plugins) is done by ``tls`` and ``identities``: there the library leaves keys in temporary files, reads tokens once and
never again, and may wait for a plugin for ever (python.md §1.2). It is imported late, as that takes half a second.
"""

from __future__ import annotations

import math
import os
import ssl
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from mirror.kube import tls
from mirror.kube.addresses import refuser
from mirror.kube.credentials import Credentials, Endpoint, Identity, IdentitySource, IdentityUnavailable, renewal_time
from mirror.kube.identities import Plugin, TokenFile
from mirror.kube.kubeconfig import Cluster, Kubeconfig, KubeconfigRefused, Policy, User, read_document

_UNKNOWN_YET = Identity(renew_at=-math.inf, expires_at=-math.inf)
_FILE_KEYS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


async def management_credentials(path: str, *, context: str = "") -> Credentials:
    """For the management cluster.

    Args:
        path: one or more files as in ``KUBECONFIG``; empty for the pod's service account.
        context: another context than the current one.

    Raises:
        KubeconfigRefused: there is no such file, it is not a kubeconfig, or it cannot be honoured.
    """
    if not path:
        return _in_cluster_credentials()
    kubeconfig = read_document(_merged(path, context), Policy({}, trusted=True))
    return await _credentials(kubeconfig, guard=None)


async def worker_credentials(kubeconfig: Kubeconfig, allow: Mapping[str, bool]) -> Credentials:
    """For a worker whose kubeconfig was checked; addresses are judged again when a connection is made.

    Raises:
        KubeconfigRefused: a file that it names does not load.
    """
    guard = refuser(allow_loopback=allow.get("loopback", False))
    return await _credentials(kubeconfig, guard=guard)


async def _credentials(kubeconfig: Kubeconfig, *, guard: Any) -> Credentials:
    cluster, user = kubeconfig.cluster, kubeconfig.user
    configuration, loader = await _load(cluster, user)
    endpoint = Endpoint(
        server=configuration.host,
        tls=_tls(cluster, user) if configuration.host.startswith("https://") else None,
        server_hostname=configuration.tls_server_name,
        proxy=configuration.proxy,
        refuse_address=guard,
    )
    source = _source(cluster, user, loader)
    identity = Identity(authorization=configuration.api_key.get("BearerToken", "")) if source is None else _UNKNOWN_YET
    return Credentials(endpoint, identity, source=source, impersonation=user.impersonation)
