"""The definition that each Kueue brings along, whether a queue of it dispatches anything or not."""

from __future__ import annotations

from typing import Any

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTERS = "multikueueclusters.kueue.x-k8s.io"


def clusters_definition() -> dict[str, Any]:
    """Of MultiKueueClusters, whatever they hold."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    group_names = {"plural": "multikueueclusters", "kind": "MultiKueueCluster"}
    spec = {"group": "kueue.x-k8s.io", "scope": "Cluster", "names": group_names, "versions": [version]}
    return {"metadata": {"name": CLUSTERS}, "spec": spec}
