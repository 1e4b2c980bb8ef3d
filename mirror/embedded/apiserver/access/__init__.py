"""Who asks, and who may: authentication, RBAC with its kinds, reviews, impersonation. ``gate`` is the way in."""

from mirror.embedded.apiserver.access.gate import Access

__all__ = ["Access"]
