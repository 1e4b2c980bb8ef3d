"""Arguments of ``mirror worker``, checked before any cluster is asked: names, labels, what goes into annotations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import click

from mirror.batch.syntax import label_value_problems, qualified_name_problems
from mirror.cli.worker.operations.roles import GrantedKind
from mirror.kinds.permissions import of_needs, of_pod_owners
from mirror.kinds.registry import JOB, UnknownKind
from mirror.kube.objects import Meta, Object
from mirror.model import names
from mirror.model.text import nearest
from mirror.settings.rule import Wrong
from mirror.settings.rules import ALLOW_NAMES, MANAGED_BY
from mirror.workers.spec import RESERVED_NAMES, spec_of

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?){2,}")
_UNVERSIONED = re.compile(r"\.v[0-9]+((alpha|beta)[0-9]+)?\.")


def checked_name(context: click.Context, param: click.Parameter, value: str) -> str:
    """A name that a worker may have; raises BadParameter."""
    if not _NAME.fullmatch(value):
        raise click.BadParameter(
            f"invalid worker name {value!r}: lower-case letters, digits and '-', at most 63 characters",
            ctx=context,
            param_hint="NAME",
        )
    if value in RESERVED_NAMES:
        text = f"{value!r} means the management cluster everywhere; take another name"
        raise click.BadParameter(text, ctx=context, param_hint="NAME")
    return value


def checked_managed_by(context: click.Context, param: click.Parameter, value: str) -> str:
    """The setting ``managedBy``; raises BadParameter."""
    try:
        MANAGED_BY.apply(value)
    except Wrong as wrong:
        raise click.BadParameter(wrong.problems[0][1], ctx=context, param=param) from None
    return value


def allowed(said: Iterable[str]) -> dict[str, bool]:
    """Read ``--allow`` as the setting ``workers.allow``.

    Raises:
        BadParameter: a name is unknown.
    """
    found = tuple(said)
    for name in found:
        if name not in ALLOW_NAMES:
            meant = nearest(name, ALLOW_NAMES)
            hint = f". Did you mean '{meant}'?" if meant else ""
            raise click.BadParameter(f"{name}: expected one of {', '.join(ALLOW_NAMES)}{hint}", param_hint="--allow")
    return dict.fromkeys(found, True)


def granted_kinds(said: str) -> tuple[GrantedKind, ...]:
    """Read ``--kinds``: kinds that are built in, by any of their names, and others as ``PLURAL.GROUP``.

    Raises:
        BadParameter: one is neither.
    """
    from mirror.kinds.declared.choosing import built_in, kinds_of  # half a second that commands for Jobs need not cost

    words = dict.fromkeys(filter(None, (word.strip() for word in said.split(","))))
    known = kinds_of(list(built_in().values())) if words else None
    found: dict[str, GrantedKind] = {}
    for word in words:
        try:
            kind = known.named(word) if known is not None else JOB
        except UnknownKind:
            plural, _, group = _UNVERSIONED.sub(".", word, count=1).partition(".")
            if not _RESOURCE.fullmatch(f"{plural}.{group}"):
                meant = nearest(word, list(built_in()))
                hint = f". Did you mean '{meant}'?" if meant else ""
                text = f"{word}: expected a kind that is built in (mirror kinds), or PLURAL.GROUP{hint}"
                raise click.BadParameter(text, param_hint="--kinds") from None
            found[word] = GrantedKind(f"{plural}.{group}", group, plural)
        else:
            if kind is not JOB:
                more = tuple(of_pod_owners(kind) | of_needs(kind))
                found[kind.name] = GrantedKind(kind.name.lower(), kind.resource.group, kind.resource.plural, more)
    return tuple(found.values())


def check_label(key: str, value: str) -> None:
    """Whether this can be a label of a worker; raises BadParameter."""
    if key.startswith(names.PREFIX) or key == "name":
        raise click.BadParameter(f"{key}: is set by jobmirror itself", param_hint="--labels")
    problems = [*qualified_name_problems(key), *label_value_problems(value)]
    if problems:
        raise click.BadParameter(f"{key}={value}: {problems[0]}", param_hint="--labels")


def check_annotations(annotations: Mapping[str, str]) -> None:
    """Whether the manager understands these annotations, given without our prefix; raises BadParameter."""
    given = {names.PREFIX + key: value for key, value in annotations.items()}
    spec = spec_of(Object(Meta(name="worker", annotations=given)), name="worker", kubeconfig=b"", labels={})
    for problem in spec.problems:
        option = problem.field.partition("[" + names.PREFIX)[2].rstrip("]")
        raise click.BadParameter(problem.text, param_hint=f"--{option}")
