"""All built-in kinds."""

from __future__ import annotations

from mirror.embedded.apiserver.apimachinery.gates import ALL_ON, ApiGates
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.registry.resources import (
    configmaps,
    cronjobs,
    events,
    jobs,
    leases,
    namespaces,
    nodes,
    priorityclasses,
    secrets,
    serviceaccounts,
)
from mirror.embedded.apiserver.registry.resources.pods import strategy as pods
from mirror.embedded.apiserver.registry.subresources import binding


def builtin(gates: ApiGates = ALL_ON) -> list[Kind]:
    """Every kind of this room, in the order in which discovery shows them.

    The gates are asked with each request (``Context.gates``); none adds or removes a kind.
    """
    return [
        binding.kind(),
        configmaps.kind(),
        *events.kinds(),
        namespaces.kind(),
        nodes.kind(),
        pods.kind(),
        secrets.kind(),
        serviceaccounts.kind(),
        cronjobs.kind(),
        jobs.kind(),
        leases.kind(),
        priorityclasses.kind(),
    ]
