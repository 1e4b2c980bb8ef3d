"""Fields that a server knows, and drops: those of gates that are off in 1.36.

They are read, so that a wrong type or an unknown field in them is refused; they can be applied, and are described;
nothing is ever stored in them. Readers of bodies, ``managedfields`` and ``components`` use ``KNOWN``;
everybody else has to do with ``STRUCTS``, which lacks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.embedded.apiserver.apimachinery.batch_schema import read
from mirror.embedded.apiserver.apimachinery.schemas.fields import STRUCTS

_FIELDS = read("""
PodSpec: schedulingGroup=*PodSchedulingGroup
VolumeProjection: clusterTrustBundle=*ClusterTrustBundleProjection podCertificate=*PodCertificateProjection
Lifecycle: stopSignal=*s
""")
PARTS = read("""
PodSchedulingGroup: podGroupName=*s
ClusterTrustBundleProjection: name=*s signerName=*s labelSelector=*LabelSelector optional=*b path=s!
PodCertificateProjection: signerName=s keyType=s maxExpirationSeconds=*i keyPath=s credentialBundlePath=s
    certificateChainPath=s userAnnotations={s}
""")
"""Structs that are only in dropped fields."""

KNOWN: Mapping[str, Mapping[str, str]] = {
    **STRUCTS,
    **PARTS,
    **{struct: {**STRUCTS[struct], **fields} for struct, fields in _FIELDS.items()},
}
"""``STRUCTS`` with the dropped fields."""

_GOES_WHEN_EMPTY = "Lifecycle"


def drop(found: dict[str, Any], struct: str) -> bool:
    """Take the fields out of what was read as this struct, in place; whether the struct itself goes with them."""
    dropped = [found.pop(name, None) for name in _FIELDS.get(struct, ())]
    return struct == _GOES_WHEN_EMPTY and not found and any(one is not None for one in dropped)
