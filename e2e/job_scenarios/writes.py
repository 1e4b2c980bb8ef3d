"""What the Job controller wrote, taken from the audit log: one value per request, with what was stored. Pure but for
reading the file. Not here: making it comparable (``normal``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from e2e.controlplane.client import Json

_VERBS = ("create", "update", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Write:
    """One request of the controller."""

    received: datetime
    verb: str
    resource: str
    """``jobs``, ``jobs/status``, ``pods``, ``workloads`` or ``podgroups``."""
    name: str
    """Of the object; empty for a refused create."""
    code: int
    sent: Json
    """The body of the request: an object, a patch, or the options of a DELETE; nothing for a JSON patch."""
    stored: Json
    """What the server answered: the object, or its Status when it refused."""
    is_json_patch: bool = False
    """One that tests something first, as all of a controller's do."""


def read_writes(path: Path, user: str, *, neighbours: str) -> Mapping[str, list[Write]]:
    """Every write of a user on Jobs, pods and their groups, by namespace, in the order the server received them.

    Of the ``neighbours``, another user, the deletes of Jobs are among them: upstream's TTL controller is apart from its
    Job controller, ours is a part of it.
    """
    found: defaultdict[str, list[Write]] = defaultdict(list)
    for line in path.read_bytes().split(b"\n")[:-1]:
        event = msgspec.json.decode(line)
        about = event.get("objectRef", {})
        is_over = event["stage"] in ("ResponseComplete", "Panic")
        if not is_over or event["verb"] not in _VERBS or "namespace" not in about:
            continue
        by = event["user"].get("username")
        if by == user or (by == neighbours and event["verb"] == "delete" and about["resource"] == "jobs"):
            found[about["namespace"]].append(_write(event, about))
    for writes in found.values():
        writes.sort(key=lambda write: write.received)
    return found


def _write(event: dict[str, Any], about: dict[str, Any]) -> Write:
    stored = event.get("responseObject") or {}
    sent = event.get("requestObject") or {}
    is_json_patch = isinstance(sent, list)
    parts = (about.get("resource", ""), about.get("subresource", ""))
    return Write(
        received=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        verb=event["verb"],
        resource="/".join(part for part in parts if part),
        name=about.get("name") or stored.get("metadata", {}).get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        sent={} if is_json_patch else sent,
        stored=stored,
        is_json_patch=is_json_patch,
    )
