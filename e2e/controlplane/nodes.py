"""The simulated node of a control plane: what kwok plays the kubelet of.

Not here: how pods fare on it (``stages.yaml``), and kwok's command line (``components``).
"""

from __future__ import annotations

import yaml

from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.components import NODE_NAME, NODE_YAML

_NODES = "/api/v1/nodes"


async def add_node(client: Client) -> None:
    """Make the node, unless it is there."""
    try:
        await client.create(_NODES, yaml.safe_load(NODE_YAML.read_text()))
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise


async def wait_until_node_is_ready(client: Client, *, seconds: float) -> None:
    """Wait until kwok has taken the node over; see ``Client.wait_until`` for the errors."""
    await client.wait_until(f"{_NODES}/{NODE_NAME}", _is_ready, seconds=seconds)


async def remove_node(client: Client) -> None:
    """Delete the node."""
    await client.delete(f"{_NODES}/{NODE_NAME}")


def _is_ready(node: Json | None) -> bool:
    conditions = node["status"].get("conditions", []) if node else []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
