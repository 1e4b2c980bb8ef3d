"""What the server's own types call their fields, and in which order, where that is not what stands on the wire.

Causes print values with these names (``printing``). Fields are called as on the wire with a capital, and stand in the
order of ``schema``, unless they are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

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
