"""The kinds of a manager as it records them for operators' commands, and as those read them: JSON text. Pure."""

from __future__ import annotations

import msgspec

from mirror.kinds import registry
from mirror.kinds.declared.choosing import BadKinds, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.registry import Kinds
from mirror.settings.kinds import KindEntry
from mirror.settings.load import Problem, read_section

_WHERE = "recorded kinds"


def text_of(kinds: Kinds) -> str:
    """Everything that the settings and the table say of these kinds; empty where all of them are code."""
    in_code = registry.BUILT_IN.by_name
    said = [kind.entry.as_mapping() for kind in kinds if isinstance(kind, DeclaredKind) and kind.name not in in_code]
    return msgspec.json.encode(said).decode() if said else ""


def kinds_in(text: str) -> Kinds:
    """The kinds that ``text_of`` wrote, and those in code.

    Raises:
        BadKinds: it is no such text, or that of a version with other fields.
    """
    problems: list[Problem] = []
    try:
        listed = msgspec.json.decode(text, type=list[dict[str, object]])
    except msgspec.DecodeError as error:
        raise BadKinds([Problem(_WHERE, str(error))]) from None
    entries = [read_section(KindEntry, one, problems, path=f"{_WHERE}[{at}]") for at, one in enumerate(listed)]
    if problems:
        raise BadKinds(problems)
    return kinds_of([one for one in entries if one is not None])
