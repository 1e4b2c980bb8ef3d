"""All cases."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache

from tests.contract import groups
from tests.contract.case import Case, Group
from tests.contract.script import FOLDER, scripts_of


@cache
def all_groups() -> tuple[Group, ...]:
    """Every group, those in writing first, by file name."""
    found = [scripts_of(file.stem) for file in sorted(FOLDER.glob("*.yaml"))]
    for module in sorted(one.name for one in pkgutil.iter_modules(groups.__path__)):
        group = getattr(importlib.import_module(f"{groups.__name__}.{module}"), "cases", None)
        if isinstance(group, Group):
            found.append(group)
    return tuple(found)


def chosen(names: Sequence[str] = ()) -> list[Case]:
    """The cases whose group or name contains one of these words; all of them if there are none."""
    every = [case for group in all_groups() for case in group.cases]
    return [case for case in every if not names or any(name in str(case) for name in names)]
