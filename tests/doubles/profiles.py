"""ClusterProfiles as their managers write them, and the definition that serves them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from mirror.model import names
from mirror.workers.cluster_profiles import CLUSTER_PROFILES, EXTENSION

Body = dict[str, Any]


def definition() -> Body:
    """The CustomResourceDefinition, with a schema that takes everything."""
    plural, kind = CLUSTER_PROFILES.plural, CLUSTER_PROFILES.kind
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": CLUSTER_PROFILES.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{CLUSTER_PROFILES.group}",
            # An API server wants to know who approved a definition under x-k8s.io.
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/cluster-inventory-api"},
        },
        "spec": {
            "group": CLUSTER_PROFILES.group,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def profile(
    name: str,
    provider: str,
    extension: Mapping[str, Any],
    *,
    namespace: str = "fleet",
    field: str = "accessProviders",
    server: str = "",
    metadata: Mapping[str, Any] | None = None,
    **status: Any,
) -> Body:
    """A profile that says where its cluster is, with one provider."""
    cluster: Body = {"server": server or f"https://{name}"}
    if extension:
        cluster["extensions"] = [{"name": EXTENSION, "extension": dict(extension)}]
    return {
        "apiVersion": CLUSTER_PROFILES.api_version,
        "kind": CLUSTER_PROFILES.kind,
        "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
        "spec": {"displayName": name, "clusterManager": {"name": "test"}},
        "status": {field: [{"name": provider, "cluster": cluster}], **status},
    }


def secret(
    name: str,
    namespace: str,
    *,
    labels: Mapping[str, str] | None = None,
    for_profiles: str = "west, east",
    **data: str,
) -> Body:
    """A Secret with these texts, which these ClusterProfiles may have."""
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    annotations = {names.FOR_CLUSTER_PROFILES: for_profiles}
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels or {}), "annotations": annotations}
    return {"metadata": metadata, "data": encoded}
