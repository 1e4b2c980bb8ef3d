"""The kinds of one manager: those in code, and ``kinds`` of its settings over those that are built in as data. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources

from mirror.kinds import registry
from mirror.kinds.base import Kind
from mirror.kinds.declared.form import Form
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.declared.status import StoredSource
from mirror.kinds.registry import Kinds
from mirror.kube.objects import Meta, Object
from mirror.model import names
from mirror.settings.kinds import KindEntry
from mirror.settings.load import Problem, read_section
from mirror.settings.rule import suggestion
from mirror.settings.strict_yaml import read_yaml

TABLE = "built_in.yaml"
_SOME_TIME = datetime(2000, 1, 1, tzinfo=UTC)


class BadKinds(ValueError):
    """Kinds of the settings cannot be mirrored; ``problems`` say which and what to do."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


@cache
def built_in() -> Mapping[str, KindEntry]:
    """The table, by kind."""
    raw = resources.files(__package__).joinpath(TABLE).read_bytes()
    problems: list[Problem] = []
    listed = read_yaml(raw, lambda path, what: problems.append(Problem(path, what)))
    rows = listed if isinstance(listed, list) else []  # what was refused is among the problems
    entries = [read_section(KindEntry, one, problems, path=f"[{at}]") for at, one in enumerate(rows)]
    if problems:
        raise BadKinds(problems)
    return {one.kind: one for one in entries if one is not None}


def kinds_of(entries: Sequence[KindEntry]) -> Kinds:
    """What is in code, Jobs first, and what the entries name and declare.

    Raises:
        BadKinds: some of it cannot be; each problem has its path in the settings.
    """
    chosen: list[DeclaredKind] = []
    problems: list[Problem] = []
    for index, entry in enumerate(entries):
        path = f"kinds[{index}]"
        if entry.kind in registry.BUILT_IN.by_name and entry == KindEntry(kind=entry.kind):
            continue  # always there
        whole, found = _whole(entry, path)
        found = found or _wrong_with(whole, path)
        if not found:
            found = _clashes(whole, chosen, path)
        problems += found
        if not found:
            chosen.append(DeclaredKind(whole))
    if problems:
        raise BadKinds(problems)
    return Kinds.of(*registry.BUILT_IN, *chosen)


def _whole(entry: KindEntry, path: str) -> tuple[KindEntry, list[Problem]]:
    """The entry with what it does not say from the table, if it is about a kind of it."""
    for kind in registry.BUILT_IN:
        if entry.kind == kind.name:
            what = f"{kind.resource.api_version} {kind.name}s are mirrored anyway; another kind needs another name"
            return entry, [Problem(f"{path}.kind", what)]
    base = built_in().get(entry.kind) or next(
        (one for one in built_in().values() if one.resource == entry.resource), None
    )
    if base is not None:
        if entry.resource not in ("", base.resource):
            what = f"{entry.kind} is built in with {base.resource}; leave it out, or declare a kind of another name"
            return entry, [Problem(f"{path}.resource", what)]
        if entry.kind not in ("", base.kind):
            return entry, [Problem(f"{path}.kind", f"{base.resource} is built in as {base.kind}; leave kind out")]
        return entry.over(base), []
    if not entry.kind:
        return entry, [Problem(f"{path}.kind", "is missing")]
    if not entry.resource:
        known = (*registry.BUILT_IN.by_name, *built_in())
        what = f"{entry.kind} is not built in{suggestion(entry.kind, known)}; one of your own needs resource and done"
        return entry, [Problem(path, what)]
    return entry, []


def _wrong_with(entry: KindEntry, path: str) -> list[Problem]:
    """What is missing in an entry, and what in it is contradictory."""
    said = [name for name in ("succeeded", "failed", "withdrawable") if getattr(entry.done, name)]
    if entry.done.never:
        what = "contradicts done.never; remove one of them, or make it [] where the kind is built in with it"
        found = [Problem(f"{path}.done.{name}", what) for name in said]
    else:
        missing = (name for name in ("succeeded", "failed") if name not in said)
        found = [
            Problem(f"{path}.done.{name}", "is missing; of a kind that never ends say never: true") for name in missing
        ]
    for name, text in (("managedBy", entry.managed_by.path), ("suspend", entry.suspend.path)):
        if text and (not text.startswith("spec.") or "[" in text):
            found.append(Problem(f"{path}.{name}.path", f"expected one field below spec, got {text}"))
    if entry.suspend.path and entry.suspend.held == entry.suspend.running:
        found.append(Problem(f"{path}.suspend.held", "must differ from running"))
    if entry.done.withdrawable and not entry.suspend.path:
        what = (
            "without suspend.path nothing keeps a mirror from beginning anew after such an end; name that, or remove it"
        )
        found.append(Problem(f"{path}.done.withdrawable", what))
    if entry.beside_kueue and entry.managed_by.value != names.MULTIKUEUE_MANAGED_BY:
        what = f"has no effect where managedBy.value is not {names.MULTIKUEUE_MANAGED_BY}; remove it"
        found.append(Problem(f"{path}.besideKueue", what))
    if found:
        return found
    form, nothing = Form.of(entry), Object(Meta())
    lost = StoredSource(form, nothing).lost_status(_SOME_TIME, message="", reason="MirrorLost") or {}
    if form.end_of(lost) != "Failed" and not entry.done.never:
        what = "must make a status that done.failed takes for failed, such as {conditions: [{type: Failed}]}"
        found.append(Problem(f"{path}.lost", what))
    held = StoredSource(form, nothing).suspended_status(_SOME_TIME) or {}
    if form.end_of(held):
        found.append(Problem(f"{path}.suspended", "must not make a status that done takes for its end"))
    not_begun = {"an object without a status": {}, "what suspended makes": held}
    if entry.done.never:
        not_begun["what lost makes"] = lost
    for whose, status in not_begun.items():
        if form.has_begun(status):
            what = f"holds of {whose}; name what is there only once one has begun (!= holds of what is absent, too)"
            found.append(Problem(f"{path}.started", what))
    return found


def _clashes(entry: KindEntry, chosen: Sequence[DeclaredKind], path: str) -> list[Problem]:
    """Two kinds have neither one name nor one resource."""
    plural, _, group = entry.resource.split(".", 2)

    def is_of(kind: Kind) -> bool:
        return (kind.resource.plural, kind.resource.group) == (plural, group)

    if any(map(is_of, registry.BUILT_IN)):
        return [Problem(f"{path}.resource", f"{plural}.{group} are mirrored anyway; remove this entry")]
    for kind in chosen:
        if kind.name == entry.kind:
            return [Problem(f"{path}.kind", f"{entry.kind} stands there twice; remove one")]
        if is_of(kind):
            return [Problem(f"{path}.resource", f"{plural}.{group} stands there twice; remove one")]
    return []
