"""Namespaces of sources that a worker does not have (setting ``workers.createNamespaces``)."""

from __future__ import annotations

from mirror.controllers.write_context import WriteContext
from mirror.kube import requests
from mirror.kube.errors import AlreadyExists, Forbidden, Invalid, NotFound
from mirror.kube.resources import NAMESPACES
from mirror.model import names
from mirror.workers.worker import Worker

POD_SECURITY = "pod-security.kubernetes.io/"


async def create_namespace(context: WriteContext, worker: Worker, namespace: str, source_namespace: str) -> bool:
    """Create what is missing, with the pod security that the source's namespace has here (D18); whether it was."""
    log = context.environment.log
    try:
        here = await context.management.send_object(requests.get(NAMESPACES, source_namespace))
    except (Forbidden, NotFound) as error:
        # Without them it would be open to pods that are not allowed in the namespace here.
        log.warning("namespace not created: its labels cannot be read", namespace=source_namespace, error=error)
        return False
    labels = {key: value for key, value in here.labels.items() if key.startswith(POD_SECURITY)}
    labels[names.ORIGIN] = context.state.transform.origin
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
    try:
        await worker.client.send(requests.create(NAMESPACES, body))
    except AlreadyExists:
        return False
    except (Forbidden, Invalid) as error:
        log.warning("namespace not created", worker=worker.name, namespace=namespace, error=error)
        return False
    return True
