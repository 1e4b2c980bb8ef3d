"""Where a command for users looks: which clusters, which namespace, which manager, as a value.

``options`` makes it of the command line, ``completing`` of an unfinished one; ``cluster`` and ``server`` go there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MANAGER_NAMESPACE = "jobmirror-system"


@dataclass(frozen=True, slots=True)
class Where:
    """As the command line says; empty texts are to be found out."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    server: str = ""
    server_ca: str = ""
    token: str = field(default="", repr=False)
    manager_namespace: str = MANAGER_NAMESPACE
    worker_context: str = ""
    accept_manager: bool = False
    """The manager may be another one than before."""
