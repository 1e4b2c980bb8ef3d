"""What is asked of a cluster before anything is done there: who it is (D19), and its version (D20).

Called by ``worker``, by the operator's commands and where a process starts.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from mirror.kinds.base import Kind
from mirror.kube import requests
from mirror.kube.amounts import MOST_SMALL_BYTES
from mirror.kube.client import Client
from mirror.kube.discovery import is_creatable
from mirror.kube.errors import Unreachable
from mirror.kube.resources import NAMESPACES
from mirror.model.text import clean

PROBE_DEADLINE_SECONDS = 5.0
OLDEST_MINOR = 29
_LONGEST_UID = 64
"""An API server's has 36 characters; it is written to the ConfigMap and into texts."""


class Unsupported(Exception):
    """The worker's Kubernetes is too old."""


class NotKubernetes(Unsupported):
    """What answers is not a Kubernetes API server."""


async def cluster_uid(client: Client) -> str:
    """Who a cluster is (D19): one small request that proves network, TLS and our rights, too."""
    probe = replace(
        requests.get(NAMESPACES, "kube-system"),
        urgent=True,
        deadline_seconds=PROBE_DEADLINE_SECONDS,
        most_bytes=MOST_SMALL_BYTES,
    )
    return clean((await client.send_object(probe)).metadata.uid, longest=_LONGEST_UID)


async def confirm_served(client: Client, kind: Kind, worker: str) -> None:
    """Ask whether a worker serves a kind that it may serve or not (D23): else what is missing there proves nothing.

    Raises:
        Unreachable: it does not.
        KubeError: it does not say.
    """
    if kind.can_vanish and not await is_creatable(client, kind.resource):
        raise Unreachable(f"worker {worker} does not serve {kind.name}")


class _Version(msgspec.Struct):
    major: str = ""
    minor: str = ""
    git_version: str = msgspec.field(name="gitVersion", default="")


async def check_version(client: Client, oldest_minor: int) -> str:
    """The version of the cluster's Kubernetes in its own words, such as ``v1.33.1``.

    Raises:
        Unsupported: it is older than 1.``oldest_minor`` (D20).
    """
    probe = requests.Request(
        "get", "GET", "/version", urgent=True, deadline_seconds=PROBE_DEADLINE_SECONDS, most_bytes=MOST_SMALL_BYTES
    )
    try:
        version = msgspec.json.decode(await client.send(probe), type=_Version)
        found = int(version.major), int(version.minor.rstrip("+"))
    except (msgspec.DecodeError, ValueError):
        raise NotKubernetes("its response to /version is not that of Kubernetes") from None
    if found < (1, oldest_minor):
        raise Unsupported(f"Kubernetes {found[0]}.{found[1]} is too old; 1.{oldest_minor} or newer is needed")
    return clean(version.git_version, longest=64) or f"v{found[0]}.{found[1]}"
