"""Which kinds the tests of kinds are about: JobSet and MPIJob always, further ones where ``MIRROR_E2E_KINDS`` says so.

``MIRROR_E2E_KINDS=all``, or names with commas: their controllers take minutes to build and to run (``make kinds``).
Ray's is played and needs no build; one more process on each cluster is not for every run either.
Tests of kinds that are not asked for are skipped, and say why; of one that is asked for and is not built, they fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import pytest

from e2e.further_lives import FURTHER
from e2e.lives import KINDS, Kind
from e2e.operator_table import Operator
from e2e.ray_lives import RAY

VARIABLE = "MIRROR_E2E_KINDS"
ALL = (*KINDS, *FURTHER, *RAY)


def asked_for(environment: Mapping[str, str] = os.environ) -> list[Kind]:
    """The kinds of this run.

    Raises:
        ValueError: the variable names something else.
    """
    names = {name for name in environment.get(VARIABLE, "").split(",") if name}
    if unknown := names - {"all", *map(str, ALL)}:
        raise ValueError(
            f"{VARIABLE}: no such kind: {', '.join(sorted(unknown))}; there are {', '.join(map(str, ALL))}"
        )
    return [kind for kind in ALL if kind in KINDS or names & {"all", str(kind)}]


CHOSEN = asked_for()


def settings() -> list[str]:
    """The setting ``kinds`` for them."""
    return [str(kind) for kind in CHOSEN]


def operators() -> list[Operator]:
    """Who runs them."""
    return list(dict.fromkeys(one for kind in CHOSEN for one in kind.operators))


def each(suits: Callable[[Kind], object] = bool, of: Iterable[Kind] = ALL) -> pytest.MarkDecorator:
    """A test of ``lives``, of each kind that suits."""
    skipped = partial(pytest.mark.skip, reason=f"{VARIABLE} does not ask for it (make kinds asks for all)")
    parameters = [
        pytest.param(kind, id=str(kind), marks=() if kind in CHOSEN else skipped()) for kind in of if suits(kind)
    ]
    return pytest.mark.parametrize("kind", parameters)
