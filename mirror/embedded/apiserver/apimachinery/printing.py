"""How an API server prints values that are more than a word in its causes (E5).

Types of the API machinery print as JSON; everything of batch and core prints with its internal names, absent things
included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from mirror.batch import times
from mirror.batch.quoting import json_text
from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS

_MACHINERY = frozenset(
    ("LabelSelector", "LabelSelectorRequirement", "ObjectMeta", "OwnerReference", "ManagedFieldsEntry")
)
_WITH_METADATA = ("PodTemplateSpec", "PersistentVolumeClaimTemplate")
"""Structs whose metadata prints in their midst."""
_OURS = frozenset((("PodFailurePolicyRule", "name"),))
"""Fields that no server has; they are printed only where they are set."""
_ZEROS = {"s": '""', "i": "0", "b": "false", "q": '"0"', "x": "0"}


def labels_text(labels: Mapping[str, str] | None) -> str:
    """A map of texts; none at all is ``null``."""
    if labels is None:
        return "null"
    return "{" + ",".join(f"{json_text(key)}:{json_text(labels[key])}" for key in sorted(labels)) + "}"


def text(value: Any, kind: str) -> str:
    """A canonical value of this type."""
    base = kind.strip("*!")
    if value is None and (kind.startswith("*") or base[:1] in "[{"):
        return "null"
    if base.startswith("["):
        return "[" + ",".join(text(one, base[1:-1]) for one in value) + "]"
    if base.startswith("{"):
        return labels_text(value)
    if base in STRUCTS:
        return "{" + ",".join(_parts(value or {}, base)) + "}"
    return _scalar(value, base)


def _parts(value: Mapping[str, Any], struct: str) -> Iterator[str]:
    fields = STRUCTS[struct]
    if struct in _MACHINERY:
        for name, kind in fields.items():
            if value.get(name) is not None:
                yield f'"{name}":{text(value[name], kind)}'
        return
    if struct in _WITH_METADATA:
        yield from _parts(value.get("metadata") or {}, "ObjectMeta")
    if struct == "PodSpec":
        moved = {name: value.get(name) for name in IN_SECURITY_CONTEXT}
        value = {**value, "securityContext": {**(value.get("securityContext") or {}), **moved}}
    elif struct == "PodSecurityContext" and IN_SECURITY_CONTEXT[0] in value:
        for name in IN_SECURITY_CONTEXT:
            printed = text(value[name], STRUCTS["PodSpec"][name])
            yield f'"{name[0].upper()}{name[1:]}":{printed}'
    for name, own in names_of(struct, tuple(fields)):
        if not name:
            yield f'"{own}":null'
        elif name == "metadata" and struct in _WITH_METADATA:
            continue
        elif (struct, name) not in _OURS or name in value:
            yield f'"{own}":{text(value.get(name), fields[name])}'


def time_text(value: str | None) -> str:
    """A time as it is stored; the zero time is ``null``."""
    stored = times.ZERO if value is None else times.stored(value)
    return "null" if stored == times.ZERO else json_text(stored)


def _scalar(value: Any, kind: str) -> str:
    if kind == "t":
        return time_text(value)
    if isinstance(value, str):
        return json_text(value)
    if isinstance(value, dict):  # FieldsV1
        return msgspec.json.encode(value, order="sorted").decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return _ZEROS.get(kind, "null")


# Names and order of fields in the server's own types, where they differ from the wire.

_SPELT = """
apiGroup=APIGroup apiVersion=APIVersion awsElasticBlockStore=AWSElasticBlockStore cephfs=CephFS csi=CSI
dnsConfig=DNSConfig dnsPolicy=DNSPolicy fc=FC fsGroup=FSGroup fsGroupChangePolicy=FSGroupChangePolicy fsType=FSType
gcePersistentDisk=GCEPersistentDisk gmsaCredentialSpec=GMSACredentialSpec
gmsaCredentialSpecName=GMSACredentialSpecName grpc=GRPC httpGet=HTTPGet httpHeaders=HTTPHeaders ip=IP iqn=IQN
iscsi=ISCSI iscsiInterface=ISCSIInterface nfs=NFS os=OS pdName=PDName rbd=RBD seLinuxChangePolicy=SELinuxChangePolicy
seLinuxOptions=SELinuxOptions sslEnabled=SSLEnabled storageos=StorageOS tcpSocket=TCPSocket tty=TTY uid=UID
wwids=WWIDs
"""
_STRUCTS = """
PodSpec: volumes initContainers containers ephemeralContainers restartPolicy terminationGracePeriodSeconds
    activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName automountServiceAccountToken nodeName
    securityContext imagePullSecrets hostname subdomain setHostnameAsFQDN affinity schedulerName tolerations
    hostAliases priorityClassName priority preemptionPolicy dnsConfig readinessGates runtimeClassName overhead
    enableServiceLinks topologySpreadConstraints os schedulingGates resourceClaims resources hostnameOverride
    -SchedulingGroup
PodSecurityContext: seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot supplementalGroups
    supplementalGroupsPolicy fsGroup fsGroupChangePolicy sysctls seccompProfile appArmorProfile seLinuxChangePolicy
Volume: name hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs
    persistentVolumeClaim rbd quobyte flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume
    azureDisk photonPersistentDisk projected portworxVolume scaleIO storageos csi ephemeral image
ISCSIVolumeSource: targetPortal iqn lun iscsiInterface fsType readOnly portals chapAuthDiscovery=DiscoveryCHAPAuth
    chapAuthSession=SessionCHAPAuth secretRef initiatorName
RBDVolumeSource: monitors=CephMonitors image=RBDImage fsType pool=RBDPool user=RadosUser keyring secretRef readOnly
AzureDiskVolumeSource: diskName diskURI=DataDiskURI cachingMode fsType readOnly kind
GlusterfsVolumeSource: endpoints=EndpointsName path readOnly
Lifecycle: postStart preStop -StopSignal
VolumeProjection: secret downwardAPI configMap serviceAccountToken -ClusterTrustBundle -PodCertificate
ObjectReference: kind namespace name uid apiVersion resourceVersion fieldPath
"""
# A word that begins with a dash is a field that no request can set; it is null.

IN_SECURITY_CONTEXT = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields of a pod that the server keeps at the beginning of its security context."""


@cache
def names_of(struct: str, fields: tuple[str, ...]) -> Sequence[tuple[str, str]]:
    """Wire name and own name of each field of a struct that has these on the wire; no wire name: it is never set."""
    words = _special().get(struct, fields)
    return [_pair(word) for word in words]


def _pair(word: str) -> tuple[str, str]:
    if word.startswith("-"):
        return "", word[1:]
    name, _, own = word.partition("=")
    return name, own or _spelt().get(name) or name[:1].upper() + name[1:]


@cache
def _spelt() -> Mapping[str, str]:
    return dict(word.split("=") for word in _SPELT.split())


@cache
def _special() -> Mapping[str, Sequence[str]]:
    structs: dict[str, list[str]] = {}
    words: list[str] = []
    for word in _STRUCTS.split():
        if word.endswith(":"):
            words = structs.setdefault(word[:-1], [])
        else:
            words.append(word)
    return structs
