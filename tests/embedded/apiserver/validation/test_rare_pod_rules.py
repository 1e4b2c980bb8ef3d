"""Rules of pod templates that hardly anybody meets: volumes of removed plugins, ephemeral containers (C31).

Fields and the end of each message, in the server's order; full sentences are compared by ``e2e/api_differential``.
"""

from __future__ import annotations

import pytest

from mirror.embedded.apiserver.validation.jobs import check_create
from tests.embedded.apiserver.validation.jobs import Json, created, job

POD = "spec.template.spec"
NOT_FOR_THEM = "cannot be set for an Ephemeral Container"

VOLUMES: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "google": ({"gcePersistentDisk": {}}, [("persistentDisk.pdName", "Required value")]),
    "a partition": (
        {"awsElasticBlockStore": {"volumeID": "v", "partition": 256}},
        [("awsElasticBlockStore.partition", "256: must be between 1 and 255, inclusive")],
    ),
    "gluster": ({"glusterfs": {}}, [("glusterfs.endpoints", "Required value"), ("glusterfs.path", "Required value")]),
    "flocker, none": ({"flocker": {}}, [("flocker", "one of datasetName and datasetUUID is required")]),
    "flocker, both": (
        {"flocker": {"datasetName": "a/b", "datasetUUID": "u"}},
        [
            ("flocker", '"resource": datasetName and datasetUUID can not be specified simultaneously'),
            ("flocker.datasetName", "must not contain '/'"),
        ],
    ),
    "cinder": (
        {"cinder": {"secretRef": {}}},
        [("cinder.volumeID", "Required value"), ("cinder.secretRef.name", "Required value")],
    ),
    "quobyte, no registry": (
        {"quobyte": {}},
        [
            ("quobyte.registry", "must be a host:port pair or multiple pairs separated by commas"),
            ("quobyte.volume", "Required value"),
        ],
    ),
    "quobyte, bad registries": (
        {"quobyte": {"registry": "a:1,[::1]:2,b,::1:3,[c]:4", "volume": "v"}},
        [("quobyte.registry", "must be a host:port pair or multiple pairs separated by commas")] * 2,
    ),
    "quobyte, a long tenant": (
        {"quobyte": {"registry": "b", "volume": "v", "tenant": "t" * 65}},
        [("quobyte.tenant", "must be a UUID and may not exceed a length of 64 characters")],
    ),
    "fibre channel, nothing": (
        {"fc": {}},
        [("fc.targetWWNs", "must specify either targetWWNs or wwids, but not both")],
    ),
    "fibre channel, everything": (
        {"fc": {"targetWWNs": ["w"], "wwids": ["w"], "lun": 256}},
        [
            ("fc.targetWWNs", '["w"]: targetWWNs and wwids can not be specified simultaneously'),
            ("fc.lun", "256: must be between 0 and 255, inclusive"),
        ],
    ),
    "fibre channel, no unit": (
        {"fc": {"targetWWNs": ["w"]}},
        [("fc.lun", "lun is required if targetWWNs is specified")],
    ),
    "flex": (
        {"flexVolume": {"options": {"A.K8s.io/x": "", "fine/k8s.io": "", "kubernetes.io": ""}}},
        [
            ("flexVolume.driver", "Required value"),
            ("flexVolume.options[A.K8s.io/x]", "kubernetes.io and k8s.io namespaces are reserved"),
            ("flexVolume.options[kubernetes.io]", "kubernetes.io and k8s.io namespaces are reserved"),
        ],
    ),
    "azure, an odd disk": (
        {"azureDisk": {"diskName": "d", "diskURI": "x", "kind": "Odd", "cachingMode": "Odd"}},
        [
            ("azureDisk.cachingMode", '"None", "ReadOnly", "ReadWrite"'),
            ("azureDisk.kind", '"Dedicated", "Managed", "Shared"'),
            ("azureDisk.diskURI", '{container-name}/{disk-name}.vhd"'),
        ],
    ),
    "azure, a managed disk": (
        {"azureDisk": {"diskName": "d", "diskURI": "https://x", "kind": "Managed"}},
        [("azureDisk.diskURI", '/disks/{disk-id}"')],
    ),
    "storageos": (
        {"storageos": {"volumeNamespace": "a.b", "secretRef": {}}},
        [
            ("storageos.volumeName", "Required value"),
            ("storageos.volumeNamespace", "must not contain dots"),
            ("storageos.secretRef.name", "Required value"),
        ],
    ),
}


@pytest.mark.parametrize(("source", "expected"), VOLUMES.values(), ids=VOLUMES)
def test_a_volume_of_a_removed_plugin_is_still_looked_into(source: Json, expected: list[tuple[str, str]]) -> None:
    found = check_create(created(job(pod={"volumes": [{"name": "v", **source}]})))

    assert [
        (one.field.removeprefix(f"{POD}.volumes[0]."), one.message[-len(text) :])
        for one, (_, text) in zip(found, expected, strict=True)
    ] == expected


def test_ephemeral_containers_are_looked_into_before_they_are_refused() -> None:
    containers: list[Json] = [
        {"name": "main", "image": "x ", "targetContainerName": "nobody", "lifecycle": {}, "ports": []},
        {
            "name": "debug",
            "image": "x",
            "targetContainerName": "main",
            "resources": {"limits": {"cpu": "1"}},
            "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a"}],
        },
    ]
    volumes = [{"name": "v", "emptyDir": {}}]
    found = check_create(created(job(pod={"ephemeralContainers": containers, "volumes": volumes})))
    path = f"{POD}.ephemeralContainers"

    assert [(one.field, one.message.rpartition(": ")[2]) for one in found] == [
        (f"{path}[0].image", "must not have leading or trailing whitespace"),
        (f"{path}[0].name", '"main"'),
        (f"{path}[0].targetContainerName", '"nobody"'),
        (f"{path}[0].ports", NOT_FOR_THEM),
        (f"{path}[0].lifecycle", NOT_FOR_THEM),
        (f"{path}[1].resources", NOT_FOR_THEM),
        (f"{path}[1].volumeMounts[0].subPath", NOT_FOR_THEM),
        (path, "ephemeral containers not allowed in pod template"),
    ]
