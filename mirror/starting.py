"""What has to hold of the management cluster before a manager does anything there. Called by ``app``."""

from __future__ import annotations

from dataclasses import replace

import tenacity

from mirror.controllers.multikueue import MultiKueue
from mirror.kinds import registry
from mirror.kinds.registry import Kinds
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.discovery import Sender
from mirror.kube.errors import Forbidden, KubeError, NotFound, Unauthorized, refusal_of
from mirror.kube.resources import EVENTS, NAMESPACES
from mirror.model.endings import CannotStart
from mirror.telemetry.logs import Log
from mirror.workers.probes import Unsupported, check_version

OLDEST_MANAGEMENT_MINOR = 32
START_SECONDS = 60.0


async def management_uid(management: Client, log: Log) -> str:
    """Who the management cluster is; waits for one that is only just starting.

    Raises:
        CannotStart: it cannot be reached, refuses us, or is too old.
    """
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(lambda e: isinstance(e, KubeError) and not isinstance(e, Unauthorized)),
        wait=tenacity.wait_exponential(multiplier=0.2, max=5.0) + tenacity.wait_random(0.0, 0.5),
        stop=tenacity.stop_after_delay(START_SECONDS),
        before_sleep=lambda state: log.warning(
            "management cluster not ready", error=state.outcome.exception() if state.outcome else None
        ),
        reraise=True,
    )
    try:
        async for attempt in retrying:
            with attempt:
                await check_version(management, OLDEST_MANAGEMENT_MINOR)
                return (await management.send_object(requests.get(NAMESPACES, "kube-system"))).metadata.uid
    except Unsupported as error:
        raise CannotStart(f"management cluster: {error}") from error
    except (Unauthorized, Forbidden) as error:
        lacks = "missing permission to read namespace kube-system"
        what = lacks if isinstance(error, Forbidden) else "it rejects our credentials"
        raise CannotStart(f"management cluster at {management.server}: {what}: {refusal_of(error)}") from error
    except KubeError as error:
        raise CannotStart(f"management cluster at {management.server}: {error}") from error
    raise AssertionError("the loop above returns or raises")


async def check_namespace(management: Client, namespace: str) -> None:
    """Whether our own namespace exists, by an event that is not stored: we may create those, but not get namespaces.

    Where even that is not allowed, the Lease will show it (``Leadership.obstacle``).

    Raises:
        CannotStart: it does not exist.
    """
    try:
        await management.send(_probing_event(namespace))
    except NotFound as error:
        raise CannotStart(
            f"namespace {namespace} not found on the management cluster (setting namespace): "
            f"create it (kubectl create namespace {namespace}), or correct the setting"
        ) from error
    except KubeError:
        return


async def find_multikueue(management: Sender, kinds: Kinds, log: Log) -> MultiKueue | None:
    """What may run objects of some kinds, too, after a first look; None: no kind is concerned, and nothing is asked."""
    if kinds is registry.BUILT_IN:
        return None
    from mirror.kinds.declared.kind import DeclaredKind  # only where there are some

    shared = [kind for kind in kinds if isinstance(kind, DeclaredKind) and kind.is_shared]
    if not shared:
        return None
    multikueue = MultiKueue(shared, log=log)
    await multikueue.look(management)
    return multikueue


def _probing_event(namespace: str) -> requests.Request:
    metadata = {"name": "jobmirror-start", "namespace": namespace}
    about = {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "namespace": namespace}
    body = {"apiVersion": EVENTS.api_version, "kind": EVENTS.kind, "metadata": metadata, "involvedObject": about}
    request = requests.create(EVENTS, body, namespace=namespace)
    return replace(request, query=(*request.query, ("dryRun", "All"))).by_any_replica()
