"""What of an object's metadata a controller keeps in its caches: much less than there is. Pure."""

from __future__ import annotations

from mirror.kube.objects import Meta


def identity(meta: Meta) -> Meta:
    """Who it is, in which version, whose it is, and whether and by what it is kept from going."""
    return Meta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        deletion_timestamp=meta.deletion_timestamp,
        finalizers=meta.finalizers,
        owner_references=meta.owner_references,
    )
