"""What every part of the settings is; the parts themselves are in ``schema`` and ``kinds``."""

from __future__ import annotations

import msgspec


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One mapping of the file; keys are camelCase there."""
