"""Subresources that are not read and written like an object: one file each. ``actions`` says what answers which."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from mirror.embedded.apiserver.authn.tokens import Tokens
from mirror.embedded.apiserver.registry.dependencies import Action
from mirror.embedded.apiserver.registry.subresources import binding, eviction, logs, tokens
from mirror.embedded.apiserver.request.info import ActionKey


def actions(issuer: Tokens) -> Mapping[ActionKey, Action]:
    """What answers, by the plural with its group, subresource or nothing, and method."""
    return {
        ("bindings", "", "POST"): binding.bind_named_by_body,
        ("pods", "binding", "POST"): binding.bind,
        ("pods", "eviction", "POST"): eviction.evict,
        ("pods", "log", "GET"): logs.log,
        ("serviceaccounts", "token", "POST"): partial(tokens.issue, issuer),
    }
