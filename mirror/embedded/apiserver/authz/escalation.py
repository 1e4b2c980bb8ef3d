"""Nobody gives away rights that he does not have: the rule for roles and bindings, beside that for writing them.

The strategies of RBAC ask before anything else is looked at, as kube-apiserver does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from mirror.batch.quoting import quoted, quoted_list
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, failure, forbidden, not_found
from mirror.embedded.apiserver.authz.policy import CLUSTER_ROLES, GROUP, ROLES, Held, RoleRef
from mirror.embedded.apiserver.authz.rules import (
    FULL,
    MOST_PARTS,
    Attributes,
    Rule,
    TooManyParts,
    described,
    missing,
)
from mirror.embedded.apiserver.messages import MASTERS_GROUP, User

_AGGREGATION = "must have cluster-admin privileges to use the aggregationRule"
_OF_GARBAGE_COLLECTION = ("ownerReferences", "finalizers", "managedFields")


class Rights(Protocol):
    """What must be known of users and roles: ``authorizer.Authorizer``."""

    def may(self, user: User, wanted: Attributes) -> bool:
        """Whether the user may do it."""
        ...

    def held(self, user: User, namespace: str) -> Held:
        """The user's rules."""
        ...

    def rules_of(self, ref: RoleRef, namespace: str) -> Sequence[Rule]:
        """What a binding gives; StatusError (404) if there is no such role."""
        ...


def check_role(rights: Rights, user: User, new: Json, old: Json | None, *, is_cluster: bool) -> None:
    """Whether the user may write this role.

    Raises:
        StatusError: 403.
    """
    if MASTERS_GROUP in user.groups or (old is not None and _is_same_but_for_collection(new, old)):
        return
    plural = (CLUSTER_ROLES if is_cluster else ROLES).partition(".")[0]
    name, namespace = new["metadata"].get("name", ""), new["metadata"].get("namespace", "")
    # A create names its object in the body only: rules for names do not hold then.
    addressed = name if old is not None else ""
    if rights.may(user, Attributes("escalate", GROUP, plural, namespace=namespace, name=addressed)):
        return
    given = msgspec.convert(new.get("rules") or [], tuple[Rule, ...])
    _confirm(rights, user, namespace, given, plural, name)
    if is_cluster and any(_selectors(one) for one in (new, old or {})) and missing(_held(rights, user, ""), FULL):
        raise forbidden(plural, GROUP, name, _AGGREGATION)


def check_binding(rights: Rights, user: User, new: Json, old: Json | None, *, is_cluster: bool) -> None:
    """Whether the user may write this binding.

    Raises:
        StatusError: 403, or 404 if its role is not there.
    """
    if MASTERS_GROUP in user.groups or (old is not None and _is_same_but_for_collection(new, old)):
        return
    name, namespace = new["metadata"].get("name", ""), new["metadata"].get("namespace", "")
    ref = msgspec.convert(new.get("roleRef") or {}, RoleRef, strict=False)
    if ref.kind in ("Role", "ClusterRole"):
        plural = f"{ref.kind.lower()}s"
        if rights.may(user, Attributes("bind", ref.api_group, plural, namespace=namespace, name=ref.name)):
            return
    else:
        raise StatusError(failure(500, "", f"unsupported role reference kind: {quoted(ref.kind)}"))
    plural = "clusterrolebindings" if is_cluster else "rolebindings"
    try:
        given = rights.rules_of(ref, namespace)
    except StatusError as refused:
        # The server has it about the kind of the request, under the name of the role.
        raise not_found(plural, GROUP, ref.name) from refused
    _confirm(rights, user, namespace, given, plural, name)


def _confirm(rights: Rights, user: User, namespace: str, given: Sequence[Rule], plural: str, name: str) -> None:
    who = f"user {quoted(user.name)} (groups={quoted_list(user.groups)})"
    try:
        lacking = missing(_held(rights, user, namespace), given)
    except TooManyParts:
        told = (
            f"{who} is attempting to grant more than {MOST_PARTS} permissions that are in no rule of theirs as a whole"
        )
        raise forbidden(plural, GROUP, name, told) from None
    if not lacking:
        return
    told = f"{who} is attempting to grant RBAC permissions not currently held:\n{described(lacking)}"
    errors = rights.held(user, namespace).errors
    if errors:
        distinct = list(dict.fromkeys(errors))
        shown = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
        told += f"; resolution errors: [{shown}]"
    raise forbidden(plural, GROUP, name, told)


def _held(rights: Rights, user: User, namespace: str) -> list[Rule]:
    return [rule for _, rule in rights.held(user, namespace).rules]


def _selectors(role: Json) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_same_but_for_collection(new: Json, old: Json) -> bool:
    """Whether only that is changed which lets the object be collected; anybody who may write it may do that."""

    def rest(body: Json) -> Json:
        kept = {key: value for key, value in body["metadata"].items() if key not in _OF_GARBAGE_COLLECTION}
        return {**body, "metadata": kept}

    return rest(new) == rest(old)
