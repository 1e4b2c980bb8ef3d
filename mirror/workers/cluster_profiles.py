"""Workers that ClusterProfiles declare (SIG-Multicluster, ``multicluster.x-k8s.io/v1alpha1``): pure reading, bounded.

A profile says where a cluster is, and by which provider one gets credentials for it; other consumers run a command for
that. Here nothing is ever run: the three providers whose answer is a Secret are built in, any other is a problem.
Used by ``profile_provider``, which reads the Secrets.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mirror.kube.errors import BadAnswer
from mirror.kube.kubeconfig import Policy, read_document
from mirror.kube.kubeconfig_cluster import CONNECTION_KEYS
from mirror.kube.objects import Object
from mirror.kube.resources import Resource
from mirror.model import names
from mirror.model.text import clean
from mirror.settings.strict_yaml import read_yaml
from mirror.workers.declarations import Declaration, Origin
from mirror.workers.declared_secrets import problem_of_name, reduced_metadata, worker_labels
from mirror.workers.spec import BadSecret, Problem, check_name, spec_of

CLUSTER_PROFILES = Resource("multicluster.x-k8s.io", "v1alpha1", "clusterprofiles", "ClusterProfile")
SECRET_READER = "secretreader"
KUBECONFIG_READER = "kubeconfig-secretreader"
OCM = "open-cluster-management"
SUPPORTED = (SECRET_READER, KUBECONFIG_READER, OCM)
EXTENSION = "client.authentication.k8s.io/exec"
OCM_SELECTOR = "authentication.open-cluster-management.io/is-clusterprofile-creds=true"
VERSION_LABEL = "kubernetes-version"
"""The worker's label with the version of its Kubernetes, as the profile says."""

MOST_STATUS_BYTES = 128 * 1024
MOST_PROVIDERS = 16
MOST_PROPERTIES = 64
MOST_CREDENTIAL_CHARACTERS = 256 * 1024

_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_PART = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_VALUE = re.compile(rf"({_PART})?")
_LABEL_KEY = re.compile(rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_PART}")
_LONGEST_LABEL_KEY = 317
_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_OF_CREDENTIALS_ONLY = Policy(
    dict.fromkeys(("loopback", "http", "proxyURL", "insecureSkipTLSVerify"), True),
)
"""For a kubeconfig of which only the user is taken: where its own cluster is does not matter."""


class BadProfile(ValueError):
    """A profile, or the Secret that it names, is of no use; the text says why and quotes no secret."""


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A Secret that holds credentials, and where in it."""

    provider: str
    namespace: str
    name: str
    """Of OCM's: the cluster's."""
    key: str = "token"
    context: str = ""
    asked_by: str = ""
    """The profile, where the Secret has to name it: in the manager's namespace others keep theirs, too."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a cluster, but for the credentials."""

    cluster: bytes
    """The cluster of a kubeconfig, as JSON."""
    credentials: SecretRef


def reduced_profile(found: Object) -> Object:
    """What is kept of a profile."""
    status = found.status if len(found.status) <= MOST_STATUS_BYTES else msgspec.Raw(b'{"isTooLarge":true}')
    return Object(metadata=reduced_metadata(found), status=status)


def access_of(profile: Object, *, own_namespace: str) -> Access:
    """How a profile says that its cluster is reached; its first supported provider counts.

    Raises:
        BadProfile: it does not say, or not so that we could use it.
    """
    status = _status(profile)
    if status.get("isTooLarge") is True:
        raise BadProfile(f"status: is longer than {MOST_STATUS_BYTES // 1024} KiB")
    listed = [*_listed(status, "accessProviders"), *_listed(status, "credentialProviders")]
    if not listed:
        raise BadProfile("status.accessProviders: is empty; its cluster manager has not said how to reach it")
    for field, provider in listed:
        name = provider.get("name")
        if name in SUPPORTED:
            cluster = provider.get("cluster")
            if not isinstance(cluster, dict):
                raise BadProfile(f"{field}.cluster: is missing")
            return _access(f"{field}.cluster", str(name), cluster, profile, own_namespace)
    named = ", ".join(dict.fromkeys(clean(str(one.get("name") or "?"), longest=63) for _, one in listed))
    raise BadProfile(
        f"status.accessProviders: unknown provider {clean(named, longest=200)}; supported: {', '.join(SUPPORTED)}"
    )


def credentials_of(secret: Object, ref: SecretRef) -> dict[str, str]:
    """The user of a kubeconfig, as the Secret holds it.

    Raises:
        BadProfile: the Secret holds nothing that could be used, or must not be used for this.
        KubeconfigRefused: its kubeconfig may not be used.
    """
    at = f"Secret {ref.namespace}/{secret.metadata.name}"
    if secret.labels.get(names.WORKER) == "true" or secret.metadata.name == names.HTTPS_SECRET:
        # Who writes a profile chooses the server that the credentials are sent to.
        raise BadProfile(f"{at} is the manager's own, and is not used for a ClusterProfile")
    allowed = secret.annotations.get(names.FOR_CLUSTER_PROFILES, "")
    by = ref.asked_by
    if by and by not in (name.strip() for name in allowed.split(",")):
        wanted = f'annotation {names.FOR_CLUSTER_PROFILES}: "{by}"'
        raise BadProfile(f"{at} is for no ClusterProfile {by}: {wanted} on it lets the profile have it")
    try:
        raw = secret.data_dict().get(ref.key)
    except BadAnswer:
        raw = None
    if not isinstance(raw, str) or not raw:
        raise BadProfile(f"{at}: data.{ref.key} is missing")
    if len(raw) > MOST_CREDENTIAL_CHARACTERS:
        raise BadProfile(f"{at}: data.{ref.key} is longer than {MOST_CREDENTIAL_CHARACTERS // 1024} KiB")
    try:
        content = base64.b64decode(raw, validate=True)
    except ValueError:
        raise BadProfile(f"{at}: data.{ref.key} is not base64") from None
    if ref.provider == KUBECONFIG_READER:
        return _user_of(content, ref.context, f"{at}: data.{ref.key}")
    token = content.decode("ascii", errors="replace").strip()
    if not _PRINTABLE.fullmatch(token):
        raise BadProfile(f"{at}: data.{ref.key} is no token")
    return {"token": token}


def choose_ocm_secret(secrets: list[Object], cluster: str, account: str) -> Object:
    """The Secret CLUSTER-ACCOUNT among those that OCM has copied beside a profile.

    Raises:
        BadProfile: there is none, or which one is not certain.
    """
    wanted = f"{cluster}-{account}" if account else f"{cluster}-ACCOUNT"
    found = [
        one
        for one in secrets
        if (one.metadata.name == wanted if account else one.metadata.name.startswith(f"{cluster}-"))
    ]
    if not found:
        raise BadProfile(f"no Secret {wanted} with label {OCM_SELECTOR} beside the profile")
    if len(found) > 1:
        several = ", ".join(sorted(one.metadata.name for one in found)[:3])
        raise BadProfile(f"several Secrets {wanted}: {several}; set workers.clusterProfiles.managedServiceAccount")
    return found[0]


def kubeconfig_of(access: Access, user: Mapping[str, str]) -> bytes:
    """What leads to the cluster, for the policy of kubeconfigs to judge. JSON is YAML."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "worker",
        "contexts": [{"name": "worker", "context": {"cluster": "worker", "user": "worker"}}],
        "clusters": [{"name": "worker", "cluster": msgspec.Raw(access.cluster)}],
        "users": [{"name": "worker", "user": dict(user)}],
    }
    return msgspec.json.encode(document)


def declared_by(profile: Object, kubeconfig: bytes | None, problem: str = "") -> Declaration:
    """The worker that a reduced profile declares; without kubeconfig it is of no use, for the reason that is given."""
    origin, name, remark = Origin(CLUSTER_PROFILES, profile), profile.metadata.name, remark_of(profile)
    if wrong := problem_of_name(name):
        return Declaration("", origin, None, str(Problem("metadata.name", wrong)))
    try:
        check_name(name)
    except BadSecret as error:
        return Declaration(name, origin, None, str(error), remark)
    if kubeconfig is None:
        return Declaration(name, origin, None, problem, remark)
    spec = spec_of(profile, name=name, kubeconfig=kubeconfig, labels=labels_of(profile))
    return Declaration(name, origin, spec, remark=remark)


def labels_of(profile: Object) -> dict[str, str]:
    """The worker's labels: the profile's own, its properties where they can be labels, and the version."""
    status, found = _status(profile), dict[str, str]()
    properties = status.get("properties")
    for one in properties[:MOST_PROPERTIES] if isinstance(properties, list) else ():
        key, value = (one.get("name"), one.get("value")) if isinstance(one, dict) else (None, None)
        if isinstance(key, str) and isinstance(value, str) and _is_label(key, value):
            found[key] = value
    version = status.get("version")
    text = version.get("kubernetes") if isinstance(version, dict) else None
    # A build's suffix, v1.33.1+k3s1, is no text of a label.
    if isinstance(text, str) and text and _LABEL_VALUE.fullmatch(text.replace("+", "-")):
        found[VERSION_LABEL] = text.replace("+", "-")
    return worker_labels(found) | worker_labels(profile.labels)


def remark_of(profile: Object) -> str:
    """What its cluster manager says of the control plane, where that is not good."""
    conditions = _status(profile).get("conditions")
    for one in conditions[:MOST_PROVIDERS] if isinstance(conditions, list) else ():
        if isinstance(one, dict) and one.get("type") == "ControlPlaneHealthy" and one.get("status") != "True":
            said = [str(one.get(key) or "") for key in ("status", "reason", "message")]
            return clean(f"ControlPlaneHealthy is {': '.join(part for part in said if part)}", longest=200)
    return ""


def _is_label(key: str, value: str) -> bool:
    return len(key) <= _LONGEST_LABEL_KEY and bool(_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value))


def _status(profile: Object) -> dict[str, Any]:
    try:
        return profile.status_dict()
    except BadAnswer:
        return {}


def _listed(status: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    found = status.get(key)
    listed = found[:MOST_PROVIDERS] if isinstance(found, list) else []
    return [(f"status.{key}[{index}]", one) for index, one in enumerate(listed) if isinstance(one, dict)]


def _access(at: str, provider: str, cluster: dict[str, Any], profile: Object, own_namespace: str) -> Access:
    said, where = _extension(cluster), f"{at}.extensions[{EXTENSION}]"
    metadata = profile.metadata
    match provider:
        case "secretreader":
            named = _text(said, "clusterName", where, _NAME)
            ref = SecretRef(provider, own_namespace, named, asked_by=metadata.name)
        case "kubeconfig-secretreader":
            namespace = _text(said, "namespace", where, _NAMESPACE, own_namespace)
            if namespace not in (own_namespace, metadata.namespace):
                # We may read more than who writes the profile.
                raise BadProfile(f"{where}.namespace: may be {own_namespace} or the profile's own, not {namespace}")
            name, key = _text(said, "name", where, _NAME), _text(said, "key", where, _KEY)
            asked_by = metadata.name if namespace == own_namespace else ""
            ref = SecretRef(provider, namespace, name, key, _any_text(said, "context", where), asked_by)
        case _:
            name = _text(said, "clusterName", where, _NAME, metadata.name)
            ref = SecretRef(provider, metadata.namespace, name)
    kept = {key: cluster[key] for key in CONNECTION_KEYS if cluster.get(key) is not None}
    return Access(msgspec.json.encode(kept), ref)


def _extension(cluster: dict[str, Any]) -> dict[str, Any]:
    listed = cluster.get("extensions")
    for one in listed[:MOST_PROVIDERS] if isinstance(listed, list) else ():
        if isinstance(one, dict) and one.get("name") == EXTENSION and isinstance(one.get("extension"), dict):
            return dict(one["extension"])
    return {}


def _text(said: dict[str, Any], key: str, at: str, pattern: re.Pattern[str], default: str = "") -> str:
    text = _any_text(said, key, at) or default
    if not text:
        raise BadProfile(f"{at}.{key}: is missing")
    if not pattern.fullmatch(text):
        raise BadProfile(f"{at}.{key}: is no such name")
    return text


def _any_text(said: dict[str, Any], key: str, at: str) -> str:
    value = said.get(key)
    if value is not None and not isinstance(value, str):
        raise BadProfile(f"{at}.{key}: is not text")
    return value or ""


def _user_of(content: bytes, context: str, at: str) -> dict[str, str]:
    """A token or a client certificate, both inline; anything else is refused (``kube.kubeconfig``)."""
    complaints: list[str] = []
    document = read_yaml(content, lambda _path, problem: complaints.append(problem))
    if complaints or not isinstance(document, dict):
        raise BadProfile(f"{at} is not a kubeconfig")
    if context:
        document["current-context"] = context
    user = read_document(document, _OF_CREDENTIALS_ONLY).user
    found = {"token": user.token} if user.token else {}
    if user.certificate_pem:
        found["client-certificate-data"] = base64.b64encode(user.certificate_pem).decode()
        found["client-key-data"] = base64.b64encode(user.key_pem).decode()
    if not found:
        raise BadProfile(f"{at} holds neither a token nor a client certificate")
    return found
