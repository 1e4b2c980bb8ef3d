"""Whether a user may do what a request is for.

``server`` calls it for every request; strategies of RBAC and access reviews ask it about permissions. Two modes:
``AlwaysAllow``, where every authenticated user may do everything, and ``RBAC``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.authz import impersonation
from mirror.embedded.apiserver.authz.policy import Held, Policy, RoleRef
from mirror.embedded.apiserver.authz.rules import FULL, Attributes, Rule, attributes_of, refusal
from mirror.embedded.apiserver.messages import MASTERS_GROUP, User
from mirror.embedded.apiserver.request.info import RequestInfo
from mirror.embedded.apiserver.storage.mvcc import Storage

Authorization = Literal["AlwaysAllow", "RBAC"]


class Authorizer:
    """Authorizes requests of one API server."""

    def __init__(self, *, storage: Storage, authorization: Authorization = "AlwaysAllow") -> None:
        self._policy = Policy(storage)
        self._modes = impersonation.Modes()
        self._allows_all = authorization == "AlwaysAllow"

    def impersonated(self, user: User, headers: Mapping[str, str], info: RequestInfo) -> User:
        """On whose behalf the request is: the user's own, unless its headers name another.

        Raises:
            StatusError: 403 or 400, not on behalf of that user.
        """
        if not any(name.startswith(impersonation.PREFIX) for name in headers):
            return user
        wanted = impersonation.wanted_user(headers)
        if wanted is None:
            return user
        return impersonation.impersonated(
            user, wanted, attributes_of(info), lambda one: self.confirm(user, one), self._modes
        )

    def check(self, user: User, verb: str, kind: Kind, subresource: str, namespace: str, name: str) -> None:
        """Whether the user may do this with an object. Raises: StatusError 403."""
        if not (self._allows_all or MASTERS_GROUP in user.groups):
            self.confirm(user, Attributes(verb, kind.group, kind.plural, subresource, namespace, name))

    def check_request(self, user: User, info: RequestInfo) -> None:
        """The same of what the request wants, whether or not it is served. Raises: StatusError 403."""
        if not (self._allows_all or MASTERS_GROUP in user.groups):
            self.confirm(user, attributes_of(info))

    def confirm(self, user: User, wanted: Attributes) -> None:
        """Raises: StatusError 403."""
        is_allowed, reason = self.decide(user, wanted)
        if not is_allowed:
            raise refusal(user, wanted, reason)

    def decide(self, user: User, wanted: Attributes) -> tuple[bool, str]:
        """Whether the user may, and why, or why not if there is more to say than that nothing allows it."""
        if self._allows_all or MASTERS_GROUP in user.groups:
            return True, ""
        held = self._policy.held(user, wanted.namespace)
        source = held.source_of(wanted)
        return (True, f"RBAC: allowed by {source}") if source else (False, held.reason())

    def may(self, user: User, wanted: Attributes) -> bool:
        """Whether the user may."""
        return self.decide(user, wanted)[0]

    def held(self, user: User, namespace: str) -> Held:
        """The user's rules."""
        return Held([("", rule) for rule in FULL]) if self._allows_all else self._policy.held(user, namespace)

    def rules_of(self, ref: RoleRef, namespace: str) -> Sequence[Rule]:
        """What a binding gives. Raises: StatusError (404) if there is no such role."""
        return self._policy.rules_of(ref, namespace)

    def all_rules(self, user: User, namespace: str) -> tuple[list[Rule], str, bool]:
        """What the user may do there, what is wrong with some bindings, and whether that is all."""
        if self._allows_all:
            return list(FULL), "", True
        held = self._policy.held(user, namespace)
        rules = [rule for _, rule in held.rules]
        return rules, held.reason().removeprefix("RBAC: "), True
