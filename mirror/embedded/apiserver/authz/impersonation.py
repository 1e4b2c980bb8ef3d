"""Requests on somebody else's behalf: what the ``Impersonate-…`` headers ask for, and who may.

The server knows several modes and tries them in turn: constrained ones, which need a right for the user and one for
what is done as that user, and the old one, which needs a right for the user alone. The refusal is the first mode's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from mirror.batch.quoting import quoted
from mirror.batch.syntax import subdomain_problems
from mirror.embedded.apiserver.apimachinery.errors import StatusError, bad_request
from mirror.embedded.apiserver.authn.tokens import NODE_NAME, account_of
from mirror.embedded.apiserver.authz.rules import Attributes, refusal
from mirror.embedded.apiserver.messages import (
    ANONYMOUS,
    AUTHENTICATED_GROUP,
    MASTERS_GROUP,
    UNAUTHENTICATED_GROUP,
    User,
)

PREFIX = "impersonate-"
_EXTRA = "impersonate-extra-"
_GROUP = "authentication.k8s.io"
_NODE_PREFIX = "system:node:"
_MOST_REMEMBERED = 10_000
_is_path = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+").fullmatch

Check = Callable[[Attributes], None]
"""Raises StatusError (403) if the user may not."""


@dataclass(frozen=True, slots=True)
class _Mode:
    """One kind of permission to impersonate."""

    name: str
    """Empty: the unconstrained verb ``impersonate``."""
    applies: Callable[[User, User], bool]
    """Whether it is meant for such a user, on whose behalf the other one asks."""

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"


def wanted_user(headers: Mapping[str, str]) -> User | None:
    """Whom the headers name, as they name them; None: nobody.

    Raises:
        StatusError: they name something of a user, but no user (400).
    """
    values = {name: text.split("\n") for name, text in headers.items() if name.startswith(PREFIX)}
    if not values:
        return None
    name = values.get("impersonate-user", [""])[0]
    uid = values.get("impersonate-uid", [""])[0]
    groups = tuple(values.get("impersonate-group", ()))
    extra: dict[str, tuple[str, ...]] = {}
    for header, texts in values.items():
        if header.startswith(_EXTRA):
            key = unquote(header.removeprefix(_EXTRA))
            extra[key] = (*extra.get(key, ()), *texts)
    if name:
        return User(name, groups, uid, extra)
    if uid or groups or extra:
        raise bad_request(f"requested {_printed(uid, groups, extra)} without impersonating a user name")
    return None


class Modes:
    """Which mode last worked for whom: it is tried first, which may decide in which one a request is allowed."""

    def __init__(self) -> None:
        self._last: dict[str, _Mode] = {}

    def tried(self, user: User) -> list[_Mode]:
        """In the order in which they are tried."""
        last = self._last.get(user.name)
        return list(_MODES) if last is None else [last, *(mode for mode in _MODES if mode is not last)]

    def worked(self, user: User, mode: _Mode) -> None:
        """Remember it."""
        if len(self._last) >= _MOST_REMEMBERED:
            self._last.clear()
        self._last[user.name] = mode


def impersonated(user: User, wanted: User, request: Attributes, check: Check, modes: Modes) -> User:
    """The user for whom the request counts.

    Args:
        user: who sends the request.
        wanted: of ``wanted_user``.
        request: what will be done as that user.
        check: whether ``user`` may do something.

    Raises:
        StatusError: ``user`` may not (403).
    """
    first: StatusError | None = None
    for mode in modes.tried(user):
        if not mode.applies(wanted, user):
            continue
        try:
            if mode.name:
                check(replace(request, verb=f"impersonate-on:{mode.name}:{request.verb}"))
            found = _checked(user, wanted, mode, check)
        except StatusError as refused:
            first = first or refused
        else:
            modes.worked(user, mode)
            return found
    assert first is not None  # the last mode always applies
    raise first


def _checked(user: User, wanted: User, mode: _Mode, check: Check) -> User:
    """The user, once each part of it is allowed."""
    for attributes in _needed(user, wanted, mode):
        check(attributes)
    groups = wanted.groups or _fixed_groups(wanted.name, mode)
    if wanted.name == ANONYMOUS:
        last = UNAUTHENTICATED_GROUP
    elif UNAUTHENTICATED_GROUP in groups:
        last = ""
    else:
        last = AUTHENTICATED_GROUP
    return replace(wanted, groups=(*groups, last) if last and last not in groups else groups)


def _fixed_groups(name: str, mode: _Mode) -> tuple[str, ...]:
    if account := account_of(name):
        return ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    return ("system:nodes",) if mode.name and _is_node(name) else ()


def _needed(user: User, wanted: User, mode: _Mode) -> Iterator[Attributes]:
    """The rights that it takes, in the server's order."""
    group = _GROUP if mode.name else ""
    if account := account_of(wanted.name):
        namespace, name = account
        yield Attributes(mode.verb, group, "serviceaccounts", namespace=namespace, name=name)
    elif mode.name and _is_node(wanted.name):
        # Who is associated with one node is asked for all, since others of the account are with others.
        node = "*" if mode is _ASSOCIATED else wanted.name.removeprefix(_NODE_PREFIX)
        yield Attributes(mode.verb, group, "nodes", name=node)
    else:
        yield Attributes(mode.verb, group, "users", name=wanted.name)
    if wanted.uid:
        yield Attributes(mode.verb, _GROUP, "uids", name=wanted.uid)
    groups = Attributes(mode.verb, group, "groups")
    if mode.name and "" in wanted.groups:
        raise refusal(user, groups, "impersonating the empty string group is not allowed")
    if mode.name and MASTERS_GROUP in wanted.groups:
        told = f"impersonating the {MASTERS_GROUP} group is not allowed"
        raise refusal(user, replace(groups, name=MASTERS_GROUP), told)
    for name in wanted.groups:
        yield replace(groups, name=name)
    extra = Attributes(mode.verb, _GROUP, "userextras")
    if mode.name and (problem := next(_extra_problems(wanted.extra), "")):
        raise refusal(user, extra, problem)
    for key, values in wanted.extra.items():
        for value in values:
            yield replace(extra, subresource=key, name=value)


def _extra_problems(extra: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """What constrained modes refuse; in the old way there was nothing that could not be an extra."""
    for key, values in extra.items():
        domain, slash, path = key.partition("/")
        if not key:
            yield "impersonating the empty string key in extra is not allowed"
        elif not (slash and domain and path) or subdomain_problems(domain) or not _is_path(path):
            shape = 'must be a domain-prefixed path (such as "acme.io/foo")'
            told = f"extra.key: Invalid value: {quoted(key)}: {shape}"
            yield f"impersonating an invalid key in extra is not allowed: {told}"
        if key != key.lower():
            yield f"impersonating a non-lowercase key in extra is not allowed: {quoted(key)}"
        if "" in values:
            yield "impersonating the empty string value in extra is not allowed"


def _is_node(name: str) -> bool:
    return name.startswith(_NODE_PREFIX) and not subdomain_problems(name.removeprefix(_NODE_PREFIX))


def _has_only_name(user: User) -> bool:
    return not (user.uid or user.groups or user.extra)


def _is_associated(wanted: User, user: User) -> bool:
    """Whether it is the node on which the pod runs whose token the user shows."""
    node = wanted.name.removeprefix(_NODE_PREFIX)
    return _is_node(wanted.name) and account_of(user.name) is not None and user.extra.get(NODE_NAME) == (node,)


_ASSOCIATED = _Mode("associated-node", lambda wanted, user: _has_only_name(wanted) and _is_associated(wanted, user))
_MODES = (
    _ASSOCIATED,
    _Mode("arbitrary-node", lambda wanted, _: _has_only_name(wanted) and _is_node(wanted.name)),
    _Mode("serviceaccount", lambda wanted, _: _has_only_name(wanted) and account_of(wanted.name) is not None),
    _Mode("user-info", lambda wanted, _: not _is_node(wanted.name) and account_of(wanted.name) is None),
    _Mode("", lambda wanted, user: True),
)


def _printed(uid: str, groups: tuple[str, ...], extra: Mapping[str, tuple[str, ...]]) -> str:
    """A user without a name, as Go prints the struct."""

    def texts(values: tuple[str, ...]) -> str:
        return "[]string{" + ", ".join(map(quoted, values)) + "}" if values else "[]string(nil)"

    shown = ", ".join(f"{quoted(key)}:{texts(values)}" for key, values in sorted(extra.items()))
    more = "map[string][]string{" + shown + "}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quoted(uid)}, Groups:{texts(groups)}, Extra:{more}}}'
