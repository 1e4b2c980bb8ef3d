"""A new worker as objects: the kubeconfig for the manager, and the Secret that holds it. Pure.

``registration`` sends them. ``kube.kubeconfig`` says what a kubeconfig may hold, ``workers.spec`` what a Secret means:
both are checked before anything is created, so that the manager does not reject what a command has just written.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from mirror.cli.worker.operations.roles import ACCOUNT, Grant
from mirror.cli.worker.operations.sites import ClusterError
from mirror.kube.kubeconfig import Cluster, KubeconfigRefused, check_kubeconfig
from mirror.kube.objects import Object, decode_object
from mirror.model import names
from mirror.workers.spec import BadSecret, read_spec

Json = dict[str, Any]

PLACEHOLDER = "TOKEN"
"""Stands for the token where none is made."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What the operator wants."""

    name: str
    grant: Grant
    namespace: str
    """The manager's, on the management cluster."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Without our prefix."""
    allow: Mapping[str, bool] = field(default_factory=dict)
    """What the manager's setting ``workers.allow`` opts in to."""
    token_seconds: int = 24 * 3600


def kubeconfig_for(cluster: Cluster, token: str) -> bytes:
    """How the manager reaches the cluster: everything inline."""
    where: Json = {"server": cluster.server}
    if cluster.ca_pem:
        where["certificate-authority-data"] = base64.b64encode(cluster.ca_pem).decode()
    if cluster.tls_server_name:
        where["tls-server-name"] = cluster.tls_server_name
    if not cluster.verify:
        where["insecure-skip-tls-verify"] = True
    if cluster.proxy:
        where["proxy-url"] = cluster.proxy
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "worker",
        "contexts": [{"name": "worker", "context": {"cluster": "worker", "user": ACCOUNT}}],
        "clusters": [{"name": "worker", "cluster": where}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
    }
    # On one line each: a token that is folded could not be renewed without writing the file anew.
    return yaml.safe_dump(document, sort_keys=False, width=2**20).encode()


def secret_for(wanted: Enrolment, kubeconfig: bytes) -> Json:
    """The Secret that registers the worker."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": wanted.name,
            "namespace": wanted.namespace,
            "labels": {**wanted.labels, names.WORKER: "true"},
            "annotations": {names.PREFIX + key: value for key, value in wanted.annotations.items()},
        },
        "type": "Opaque",
        "data": {names.KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()},
    }


def check_enrolment(wanted: Enrolment, cluster: Cluster) -> None:
    """Whether the manager will take it.

    Raises:
        ClusterError: it will not; the text says why, and what to do.
    """
    if not _NAME.fullmatch(wanted.name):
        raise ClusterError(
            f"invalid worker name {wanted.name!r}: lower-case letters, digits and '-', at most 63 characters"
        )
    ours = sorted(key for key in wanted.labels if key.startswith(names.PREFIX))
    if ours:
        raise ClusterError(f"label {ours[0]}: {names.PREFIX} is reserved for the manager; choose another key")
    kubeconfig = kubeconfig_for(cluster, PLACEHOLDER)
    try:
        check_kubeconfig(kubeconfig, wanted.allow)
        spec = read_spec(_as_object(secret_for(wanted, kubeconfig)))
    except KubeconfigRefused as error:
        raise ClusterError(f"the manager would reject this kubeconfig: {describe_refusal(error)}") from error
    except BadSecret as error:
        raise ClusterError(str(error)) from error
    if spec.problems:
        raise ClusterError("; ".join(map(str, spec.problems)))


def describe_refusal(error: KubeconfigRefused) -> str:
    """A refusal, with what an operator who is at the command line can do."""
    name = re.search(r"workers\.allow\.([A-Za-z]+)", error.fix)
    if name is None:
        return str(error)
    return f"{error} in the manager's settings and use --allow {name[1]} here (or --server with another address)"


def changes_for(wanted: Enrolment, kubeconfig: bytes, found: Object) -> Json:
    """What to change in a Secret that is there: what was not asked for stays."""
    body = secret_for(wanted, kubeconfig)
    meta = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
    return {
        "metadata": {**meta, "labels": body["metadata"]["labels"], "annotations": body["metadata"]["annotations"]},
        "data": body["data"],
    }


def _as_object(body: Json) -> Object:
    return decode_object(msgspec.json.encode(body))
