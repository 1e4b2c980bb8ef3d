"""Who has which rules: roles and bindings, read from storage and kept until one of them changes.

``authorizer`` uses it for every request; for a known user that costs one look into a dict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from mirror.batch.label_selectors import Requirement
from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery.errors import StatusError, not_found
from mirror.embedded.apiserver.authn.tokens import ACCOUNT_PREFIX
from mirror.embedded.apiserver.authz.rules import Attributes, Rule, allows
from mirror.embedded.apiserver.messages import User
from mirror.embedded.apiserver.storage.mvcc import Storage

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"roles.{GROUP}", f"clusterroles.{GROUP}"
ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS = f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}"
_KINDS = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
_MOST_REMEMBERED = 4096


class _Meta(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    labels: dict[str, str] = {}


class _Expression(msgspec.Struct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class _Selector(msgspec.Struct, frozen=True, rename="camel"):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[_Expression, ...] = ()


class _Aggregation(msgspec.Struct, frozen=True, rename="camel"):
    cluster_role_selectors: tuple[_Selector, ...] = ()


class _Role(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _Meta
    rules: tuple[Rule, ...] | None = ()
    aggregation_rule: _Aggregation | None = None


class RoleRef(msgspec.Struct, frozen=True, rename="camel"):
    """Which role a binding gives."""

    kind: str = ""
    name: str = ""
    api_group: str = ""


class _Subject(msgspec.Struct, frozen=True):
    kind: str
    name: str
    namespace: str = ""


class _Binding(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _Meta
    role_ref: RoleRef
    subjects: tuple[_Subject, ...] | None = ()


_decode_role = msgspec.json.Decoder(_Role).decode
_decode_binding = msgspec.json.Decoder(_Binding).decode


@dataclass(slots=True)
class Held:
    """The rules of a user in a namespace, or cluster-wide, in the server's order; each with what gives it."""

    rules: list[tuple[str, Rule]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Bindings that give nothing since their role is not there."""

    def source_of(self, wanted: Attributes) -> str:
        """What allows it; empty: nothing does."""
        return next((source for source, rule in self.rules if allows(rule, wanted)), "")

    def reason(self) -> str:
        """What a refusal says beside that it is one."""
        if not self.errors:
            return ""
        distinct = list(dict.fromkeys(self.errors))
        return f"RBAC: {distinct[0]}" if len(distinct) == 1 else f"RBAC: [{', '.join(distinct)}]"


class Policy:
    """All roles and bindings."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._versions: tuple[int, ...] = ()
        self._roles: dict[tuple[str, str], _Role] = {}
        """By namespace (empty: cluster roles) and name."""
        self._bindings: dict[str, list[_Binding]] = {}
        """By namespace; empty: cluster role bindings."""
        self._remembered: dict[tuple[str, tuple[str, ...], str], Held] = {}

    def held(self, user: User, namespace: str) -> Held:
        """What this user may do there; an empty namespace means the whole cluster."""
        self._refresh()
        # Anybody may ask about any text as a namespace: only those that have bindings are worth a memory.
        namespace = namespace if namespace in self._bindings else ""
        key = (user.name, user.groups, namespace)
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            found = self._remembered[key] = self._find(user, namespace)
        return found

    def rules_of(self, ref: RoleRef, namespace: str) -> Sequence[Rule]:
        """What a binding in this namespace (empty: of the whole cluster) gives.

        Raises:
            StatusError: there is no such role (404).
        """
        self._refresh()
        is_role = ref.kind == "Role"
        role = self._roles.get((namespace if is_role else "", ref.name))
        if role is None or (is_role and not namespace):
            raise not_found("role" if is_role else "clusterrole", GROUP, ref.name)
        return self._rules(role, ())

    def _refresh(self) -> None:
        versions = tuple(map(self._storage.changed, _KINDS))
        if versions == self._versions:
            return
        self._versions = versions
        self._remembered.clear()
        self._roles = {}
        for stored_as in (ROLES, CLUSTER_ROLES):
            for record in self._storage.records(stored_as, None):
                role = _decode_role(record.raw)
                self._roles[role.metadata.namespace, role.metadata.name] = role
        self._bindings = {}
        for stored_as in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
            for record in self._storage.records(stored_as, None):
                binding = _decode_binding(record.raw)
                self._bindings.setdefault(binding.metadata.namespace, []).append(binding)

    def _find(self, user: User, namespace: str) -> Held:
        held = Held()
        for place in dict.fromkeys(("", namespace)):
            for binding in self._bindings.get(place, ()):
                subject = next((one for one in binding.subjects or () if _is_meant(user, one, place)), None)
                if subject is None:
                    continue
                try:
                    rules = self.rules_of(binding.role_ref, place)
                except StatusError as refused:
                    held.errors.append(str(refused))
                    continue
                source = _described(binding, subject)
                held.rules.extend((source, rule) for rule in rules)
        return held

    def _rules(self, role: _Role, within: tuple[str, ...]) -> Sequence[Rule]:
        """Those of the role; of one that aggregates others, theirs, which a controller would have copied."""
        if role.aggregation_rule is None or role.metadata.namespace:
            return role.rules or ()
        name = role.metadata.name
        others = [
            one
            for (namespace, other), one in self._roles.items()
            if not namespace and other != name and other not in within
            if any(_selects(selector, one.metadata.labels) for selector in role.aggregation_rule.cluster_role_selectors)
        ]
        return tuple(dict.fromkeys(rule for one in others for rule in self._rules(one, (*within, name))))


def _is_meant(user: User, subject: _Subject, namespace: str) -> bool:
    if subject.kind == "User":
        return user.name == subject.name
    if subject.kind == "Group":
        return subject.name in user.groups
    home = subject.namespace or namespace
    return bool(home) and user.name == f"{ACCOUNT_PREFIX}{home}:{subject.name}"


def _described(binding: _Binding, subject: _Subject) -> str:
    """A binding as reasons name it."""
    place, meta, ref = binding.metadata.namespace, binding.metadata, binding.role_ref
    kind, name = ("RoleBinding", f"{meta.name}/{place}") if place else ("ClusterRoleBinding", meta.name)
    who = f"{subject.name}/{subject.namespace or place}" if subject.kind == "ServiceAccount" else subject.name
    return f"{kind} {quoted(name)} of {ref.kind} {quoted(ref.name)} to {subject.kind} {quoted(who)}"


def _selects(selector: _Selector, labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        Requirement(one.key, one.operator, frozenset(one.values)).matches(labels) for one in selector.match_expressions
    )
