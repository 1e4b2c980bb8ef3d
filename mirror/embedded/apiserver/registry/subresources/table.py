"""Subresources that are not read and written like an object: one file each. ``ACTIONS`` says what answers which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mirror.embedded.apiserver.registry.subresources import binding, eviction, logs, tokens
from mirror.embedded.apiserver.registry.subresources.common import Action

ACTIONS: Final[Mapping[tuple[str, str, str], Action]] = {
    ("bindings", "", "POST"): binding.bind_named_by_body,
    ("pods", "binding", "POST"): binding.bind,
    ("pods", "eviction", "POST"): eviction.evict,
    ("pods", "log", "GET"): logs.log,
    ("serviceaccounts", "token", "POST"): tokens.issue,
}
"""(Plural with group, subresource or nothing, method) → what answers."""
