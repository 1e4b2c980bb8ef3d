"""The API server's audit log: what was asked of it, by whom. For tests that count requests or look at write bodies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

Level = Literal["Metadata", "Request", "RequestResponse"]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request. ``code`` is 0 for a watch that is still open."""

    user: str
    user_agent: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    uri: str
    received: datetime
    """When the API server had read it. Entries are in the order of the answers, more or less."""
    is_forbidden: bool = False
    """Whether the user lacked the right; a 403 may have other reasons."""
    body: Any = None
    """What was sent, decoded; None unless the level is Request."""


def write_policy(path: Path, level: Level) -> Path:
    """Write the policy that logs every request at this level, watches at their start and at their end."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": level}],
    }
    path.write_bytes(msgspec.json.encode(policy))
    return path


def read_log(path: Path) -> list[AuditEntry]:
    """Every request in the log, each once, in the order in which they were first logged."""
    entries: dict[str, AuditEntry] = {}
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    for line in lines[:-1]:  # after the last newline there may be half a line
        event = msgspec.json.decode(line)
        # A watch is logged twice, in the place of its start; the second time knows its code.
        entries[event["auditID"]] = _entry(event)
    return list(entries.values())


def _entry(event: dict[str, Any]) -> AuditEntry:
    about = event.get("objectRef", {})
    is_over = event["stage"] != "ResponseStarted"
    return AuditEntry(
        user=event["user"].get("username", ""),
        received=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        user_agent=event.get("userAgent", ""),
        verb=event["verb"],
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0) if is_over else 0,
        uri=event["requestURI"],
        is_forbidden=event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid",
        body=event.get("requestObject"),
    )
