"""Patches: ``patched`` for JSON, merge and strategic merge patches, ``applied`` for server-side apply."""

from mirror.embedded.apiserver.patches.applying import applied
from mirror.embedded.apiserver.patches.patching import APPLY_PATCH, patched, type_of

__all__ = ["APPLY_PATCH", "applied", "patched", "type_of"]
