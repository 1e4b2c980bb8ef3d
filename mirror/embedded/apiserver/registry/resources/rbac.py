"""The kinds of RBAC: defaults, rules, columns, and that nobody gives away what he does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from mirror.batch.quoting import json_text, json_texts
from mirror.batch.syntax import segment_problems, subdomain_problems
from mirror.batch.violations import Violation, invalid, invalid_texts, not_supported_text, required
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json
from mirror.embedded.apiserver.authz.escalation import Rights, check_binding, check_role
from mirror.embedded.apiserver.authz.policy import GROUP
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import Builtin
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.validation.metadata import check_selector

_URLS_OF_NAMESPACE = "namespaced rules cannot apply to non-resource URLs"
_BOTH = "rules cannot apply to both regular resources and non-resource URLs"
_SUBJECTS = {"User": "Users", "Group": "Groups", "ServiceAccount": "ServiceAccounts"}


def _columns(where: str, about: str) -> tuple[Column, ...]:
    told = f"RoleRef {about} in the global namespace."
    unresolved = "If the RoleRef cannot be resolved, the Authorizer must return an error."
    more = (Column(name, description=f"{name} in the {where}", priority=1) for name in _SUBJECTS.values())
    return (printers.NAME, Column("Role", description=f"{told} {unresolved}"), printers.AGE, *more)


class _Access(Builtin):
    name_problems = staticmethod(segment_problems)
    allows_create_on_update = True
    looks_at_rights = True

    def __init__(self, rights: Rights) -> None:
        self._rights = rights


class Roles(_Access):
    """What may be done."""

    struct = "Role"
    columns = (printers.NAME, Column("Created At", "date", description=TEXTS["CREATED"]))

    def prepare_create(self, body: Json, context: Context) -> Json:
        check_role(self._rights, context.user, body, None, is_cluster=not self.is_namespaced)
        return super().prepare_create(body, context)

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        check_role(self._rights, context.user, new, old, is_cluster=not self.is_namespaced)
        return super().prepare_update(new, old, context)

    def check(self, body: Json, context: Context) -> Iterator[Violation]:
        for position, rule in enumerate(body.get("rules") or ()):
            yield from self._check_rule(f"rules[{position}]", rule)
        aggregation = body.get("aggregationRule")
        if aggregation is None:
            return
        field, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or ()
        if not selectors:
            yield required(field, "at least one clusterRoleSelector required if aggregationRule is non-nil")
        for position, selector in enumerate(selectors):
            wrong = list(check_selector(f"{field}[{position}]", selector))
            yield from wrong
            if wrong:
                yield invalid(f"{field}[{position}]", "null", "invalid label selector.")

    def _check_rule(self, field: str, rule: Json) -> Iterator[Violation]:
        if not rule.get("verbs"):
            yield required(f"{field}.verbs", "verbs must contain at least one value")
        if urls := rule.get("nonResourceURLs"):
            if self.is_namespaced:
                yield invalid(f"{field}.nonResourceURLs", json_texts(urls), _URLS_OF_NAMESPACE)
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                yield invalid(f"{field}.nonResourceURLs", json_texts(urls), _BOTH)
            return
        if not rule.get("apiGroups"):
            yield required(f"{field}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{field}.resources", "resource rules must supply at least one resource")

    def cells(self, body: Json, now: datetime) -> list[object]:
        return [body["metadata"]["name"], body["metadata"].get("creationTimestamp")]


class Bindings(_Access):
    """Who may do it."""

    struct = "RoleBinding"
    columns = _columns("roleBinding", "can reference a Role in the current namespace or a ClusterRole")

    def default(self, body: Json, context: Context) -> None:
        ref = body.get("roleRef")
        if isinstance(ref, dict) and not ref.get("apiGroup"):
            ref["apiGroup"] = GROUP
        for subject in body.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP

    def prepare_create(self, body: Json, context: Context) -> Json:
        check_binding(self._rights, context.user, body, None, is_cluster=not self.is_namespaced)
        return super().prepare_create(body, context)

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        check_binding(self._rights, context.user, new, old, is_cluster=not self.is_namespaced)
        return super().prepare_update(new, old, context)

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        found = list(super().check_update(new, old, context))
        if new.get("roleRef") != old.get("roleRef"):
            found.append(invalid("roleRef", _ref_text(new.get("roleRef") or {}), "cannot change roleRef"))
        return found

    def check(self, body: Json, context: Context) -> Iterator[Violation]:
        ref = body.get("roleRef") or {}
        group, kind, name = ref.get("apiGroup", ""), ref.get("kind", ""), ref.get("name", "")
        kinds = ("Role", "ClusterRole") if self.is_namespaced else ("ClusterRole",)
        if group != GROUP:
            yield not_supported_text("roleRef.apiGroup", group, (GROUP,))
        if kind not in kinds:
            yield not_supported_text("roleRef.kind", kind, kinds)
        if name:
            yield from invalid_texts("roleRef.name", name, segment_problems(name))
        else:
            yield required("roleRef.name")
        for position, subject in enumerate(body.get("subjects") or ()):
            yield from self._check_subject(f"subjects[{position}]", subject)

    def _check_subject(self, field: str, subject: Json) -> Iterator[Violation]:
        kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
        if not name:
            yield required(f"{field}.name")
        if kind == "ServiceAccount":
            if name:
                yield from invalid_texts(f"{field}.name", name, subdomain_problems(name))
            if group:
                yield not_supported_text(f"{field}.apiGroup", group, ("",))
            if not self.is_namespaced and not subject.get("namespace"):
                yield required(f"{field}.namespace")
        elif kind in ("User", "Group"):
            if group != GROUP:
                yield not_supported_text(f"{field}.apiGroup", group, (GROUP,))
        else:
            yield not_supported_text(f"{field}.kind", kind, ("ServiceAccount", "User", "Group"))

    def cells(self, body: Json, now: datetime) -> list[object]:
        ref, subjects = body.get("roleRef") or {}, body.get("subjects") or ()
        row: list[object] = [body["metadata"]["name"], f"{ref.get('kind')}/{ref.get('name')}", printers.age(body, now)]
        for kind in _SUBJECTS:
            names = (one for one in subjects if one.get("kind") == kind)
            row.append(", ".join(_shown(one) for one in names))
        return row


class ClusterRoles(Roles):
    """The same everywhere."""

    struct = "ClusterRole"
    is_namespaced = False


class ClusterRoleBindings(Bindings):
    """Who may do it everywhere."""

    struct = "ClusterRoleBinding"
    is_namespaced = False
    columns = _columns("clusterRoleBinding", "can only reference a ClusterRole")


def _ref_text(ref: Json) -> str:
    """As the server prints its own type."""
    values = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    return "{" + ",".join(f'"{shown}":{json_text(ref.get(name, ""))}' for shown, name in values) + "}"


def _shown(subject: Json) -> str:
    name = str(subject.get("name", ""))
    return f"{subject.get('namespace', '')}/{name}" if subject.get("kind") == "ServiceAccount" else name


def kinds(rights: Rights) -> list[Kind]:
    """``rbac.authorization.k8s.io/v1``."""

    strategies = (ClusterRoleBindings(rights), ClusterRoles(rights), Bindings(rights), Roles(rights))
    return [
        Kind(
            GROUP,
            "v1",
            strategy.struct,
            f"{strategy.struct.lower()}s",
            strategy,
            singular=strategy.struct.lower(),
            is_namespaced=strategy.is_namespaced,
        )
        for strategy in strategies
    ]
