"""A whole API server, put together: every kind, its rules, who may do what, and the namespaces that always exist."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from random import Random

from mirror.batch import times
from mirror.batch.feature_gates import DEFAULT_GATES, FeatureGates
from mirror.embedded.apiserver.admission.chain import Admission
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.authn.authenticator import Authenticator
from mirror.embedded.apiserver.authz import bootstrap
from mirror.embedded.apiserver.authz.authorizer import Authorization, Authorizer
from mirror.embedded.apiserver.crds.definitions import Definitions
from mirror.embedded.apiserver.discovery import groups
from mirror.embedded.apiserver.messages import User
from mirror.embedded.apiserver.registry import object_meta
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.registry.resources import (
    configmaps,
    cronjobs,
    events,
    jobs,
    leases,
    namespaces,
    nodes,
    priorityclasses,
    rbac,
    reviews,
    secrets,
    serviceaccounts,
    webhook_configurations,
)
from mirror.embedded.apiserver.registry.resources.pods import strategy as pods
from mirror.embedded.apiserver.registry.subresources import binding, table
from mirror.embedded.apiserver.server import ApiServer
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.runtime.clock import Clock

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


def build(
    *,
    clock: Clock,
    random: Random,
    gates: FeatureGates = DEFAULT_GATES,
    storage: Storage | None = None,
    authorization: Authorization = "AlwaysAllow",
    tokens: Mapping[str, User] | None = None,
) -> ApiServer:
    """An API server with everything there is. ``tokens`` are bearer tokens and whose they are."""
    storage = storage if storage is not None else Storage()
    registry = Registry()
    authenticator = Authenticator(
        storage=storage, clock=clock, random=random, tokens=tokens or {}, allows_anonymous=authorization == "RBAC"
    )
    authorizer = Authorizer(storage=storage, authorization=authorization)
    for kind in (*builtin(gates), *reviews.kinds(), *rbac.kinds(authorizer), *webhook_configurations.kinds()):
        registry.add(kind)

    def context() -> Context:
        return Context(now=times.of(clock.now()), gates=gates)

    dependencies = Dependencies(
        registry=registry,
        storage=storage,
        admission=Admission(storage=storage, registry=registry, random=random, context=context),
        authorizer=authorizer,
        clock=clock,
        random=random,
        gates=gates,
    )
    actions = {**table.actions(authenticator.tokens), **reviews.actions(authenticator, authorizer)}
    server = ApiServer(
        dependencies=dependencies,
        authenticator=authenticator,
        actions=actions,
        discover=partial(groups.answer, gates=gates),
    )
    definitions = Definitions(storage=storage, registry=registry, clock=clock, actions=actions)
    definitions.start()
    server.at_its_end.append(definitions.stop)
    create_first_objects(dependencies)
    bootstrap.store(storage, now=times.of(clock.now()), new_uid=lambda: objects.new_uid(random))
    return server


def create_first_objects(deps: Dependencies) -> None:
    """Those that every cluster has, unless they are there."""
    bodies = [_namespace(name) for name in NAMESPACES] + priorityclasses.system()
    for body in bodies:
        kind = deps.registry.by_kind(body["apiVersion"], body["kind"])
        assert kind is not None
        if deps.storage.get(kind.stored_as, "", body["metadata"]["name"]) is None:
            body["metadata"]["uid"] = objects.new_uid(deps.random)
            body["metadata"]["creationTimestamp"] = times.of(deps.clock.now())
            object_meta.store(deps.storage, kind, body, replacing=None)


def _namespace(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def builtin(gates: FeatureGates = DEFAULT_GATES) -> list[Kind]:
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
