"""Workers that Secrets of others declare (setting ``workers.secretSources``): pure reading, bounded.

Such Secrets are made by whoever makes clusters (Cluster API, Open Cluster Management, a team's tool), so little is kept
of them: labels, our annotations, and one key. Used by ``secret_provider``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from mirror.kube.errors import BadAnswer
from mirror.kube.objects import Meta, Object
from mirror.kube.resources import SECRETS
from mirror.model import names
from mirror.settings.schema import SecretSource
from mirror.workers.declarations import Declaration, Origin
from mirror.workers.spec import BadSecret, Problem, check_name, read_kubeconfig, spec_of

MOST_KUBECONFIG_CHARACTERS = 256 * 1024
"""As it stands in the Secret, in base64."""
MOST_LABELS = 64
MOST_ANNOTATION_CHARACTERS = 4096
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TOO_LARGE = 0
"""Stands where the kubeconfig was."""
_INTERNAL = (
    names.PREFIX,
    "authentication.open-cluster-management.io/",
    "clusterctl.cluster.x-k8s.io/",
    "kubectl.kubernetes.io/",
)
"""Labels that tell nothing of a cluster."""


def declares(found: Object, source: SecretSource) -> bool:
    """Whether a Secret that the selector has found declares a worker: it has the key, and is not one of ours.

    Cluster API puts its label on certificates and service accounts' keys, too.
    """
    if found.labels.get(names.WORKER) == "true":
        return False
    try:
        return source.key in found.data_dict()
    except BadAnswer:
        return False


def reduced(found: Object, source: SecretSource) -> Object:
    """What is kept of such a Secret."""
    value = found.data_dict().get(source.key)
    if isinstance(value, str) and len(value) > MOST_KUBECONFIG_CHARACTERS:
        value = _TOO_LARGE
    return Object(metadata=reduced_metadata(found), data=msgspec.Raw(msgspec.json.encode({source.key: value})))


def reduced_metadata(found: Object) -> Meta:
    """Who an object is, its labels, and our annotations."""
    metadata = found.metadata
    return Meta(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        creation_timestamp=metadata.creation_timestamp,
        labels=dict(metadata.labels or {}),
        annotations={
            key: value[:MOST_ANNOTATION_CHARACTERS]
            for key, value in (metadata.annotations or {}).items()
            if key.startswith(names.PREFIX)
        },
    )


def declared_by(found: Object, source: SecretSource) -> Declaration:
    """The worker that a reduced Secret declares."""
    origin = Origin(SECRETS, found)
    name = found.labels.get(source.name_from_label, "") if source.name_from_label else found.metadata.name
    if problem := problem_of_name(name):
        where = f"metadata.labels[{source.name_from_label}]" if source.name_from_label else "metadata.name"
        return Declaration("", origin, None, str(Problem(where, problem)))
    refused, kubeconfig = None, b""
    try:
        check_name(name)
    except BadSecret as error:
        return Declaration(name, origin, None, str(error), key=source.key)
    try:
        kubeconfig = kubeconfig_in(found, source.key)
    except BadSecret as error:
        refused = error.problem
    labels = worker_labels(found.labels)
    spec = spec_of(found, name=name, kubeconfig=kubeconfig, labels=labels, refused=refused)
    return Declaration(name, origin, spec, key=source.key)


def kubeconfig_in(found: Object, key: str) -> bytes:
    """The kubeconfig in such a Secret, whole or reduced.

    Raises:
        BadSecret: it is missing, too long, or not base64.
    """
    value = found.data_dict().get(key)
    if value == _TOO_LARGE or (isinstance(value, str) and len(value) > MOST_KUBECONFIG_CHARACTERS):
        text = f"is longer than {MOST_KUBECONFIG_CHARACTERS // 1024} KiB"
        raise BadSecret(Problem(f"data.{key}", text, "leave out all contexts but one"))
    return read_kubeconfig(found, key)


def worker_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that a worker has of its declaration's; of very many the first."""
    kept = {key: value for key, value in sorted(labels.items()) if not key.startswith(_INTERNAL)}
    return dict(list(kept.items())[:MOST_LABELS])


def problem_of_name(name: str) -> str:
    """Why no worker can have this name; empty when one can."""
    if not name:
        return "is missing; it names the worker"
    if not _NAME.fullmatch(name):
        return "is no name for a worker: lower-case letters, digits, '-' and '.'"
    return ""
