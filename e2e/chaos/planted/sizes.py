"""Histories of elastic Jobs, which get another size while they run: for ``never-back`` and ``seed``. Of Jobs alone."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from e2e.chaos.history import Json, Version
from e2e.chaos.planted.operators import seeded
from e2e.chaos.planted.writing import (
    BASE,
    COMPLETE,
    Draft,
    deleted_after_all,
    mirror,
    mirrored,
    on,
    runs_on_east,
    source,
    specified,
)

# -- good --------------------------------------------------------------------------------------------------------------


def made_smaller(draft: Draft) -> None:
    """D7: indexes that it has no more are counted no more."""
    counts(draft, (10, 6, "0-2,5", 4), (11, 3, "0-2,5", 4), (12, 3, "0-2", 3))


def made_smaller_and_larger_again(draft: Draft) -> None:
    """D7: nobody has counted it anew in between."""
    counts(draft, (10, 6, "0-2,5", 4), (11, 3, "0-2,5", 4), (12, 6, "0-2,5", 4))


def goes_on_smaller_than_it_was(draft: Draft) -> None:
    """D14: it was made smaller while its copy was held, so that this has less when it runs."""
    goes_on(draft, {"completedIndexes": "0", "succeeded": 1}, size=3)


# -- planted -----------------------------------------------------------------------------------------------------------


def loses_an_index_that_it_still_has(draft: Draft) -> None:
    """It was made smaller, and its second one had succeeded."""
    counts(draft, (10, 6, "0-2,5", 4), (11, 3, "0-2,5", 4), (12, 3, "0,2", 2))


def loses_an_index_as_if_it_were_smaller(draft: Draft) -> None:
    """It is elastic, and as large as before."""
    counts(draft, (10, 6, "0-2,5", 4), (12, 6, "0-2", 3))


def has_fewer_successes_than_indexes(draft: Draft) -> None:
    """Three of its indexes have succeeded."""
    counts(draft, (10, 6, "0-2,5", 4), (11, 3, "0-2,5", 4), (12, 3, "0-2", 1))


def goes_on_from_less_though_it_is_as_large(draft: Draft) -> None:
    """One index runs again."""
    goes_on(draft, {"completedIndexes": "0", "succeeded": 1}, size=5)


# -- parts -------------------------------------------------------------------------------------------------------------


def of_size(body: Json, size: int) -> Json:
    """An elastic one."""
    return specified(body, completionMode="Indexed", completions=size, parallelism=size)


def counts(draft: Draft, *said: tuple[float, int, str, int]) -> None:
    """It runs on east and says this, each time: when, its size, the indexes that are completed, its successes."""
    runs_on_east(draft)
    status: Json = {}
    for at, size, completed, succeeded in said:
        status = {"completedIndexes": completed, "succeeded": succeeded}
        draft.put(at - 0.1, "east", mirror(uid="m", **status))
        draft.put(at, "management", of_size(source(on("east"), mirrored("m"), **status), size))
    draft.put(40, "east", mirror(COMPLETE, uid="m", **status))
    ended = source(on("east"), mirrored("m"), COMPLETE, **status)
    draft.put(40.1, "management", of_size(ended, said[-1][1]))
    deleted_after_all(draft, "east")


def goes_on(draft: Draft, has: Json, *, size: int) -> None:
    """It was moved when two of its five indexes had succeeded; its copy is of this size and has this when it runs."""
    seeded(draft, has, counted={"completedIndexes": "0,4", "succeeded": 2})
    for number, one in enumerate(draft.records):
        if isinstance(one, Version) and one.body is not None:
            is_held = one.at < BASE + 22
            draft.records[number] = replace(one, body=of_size(one.body, 5 if is_held else size))


GOOD_OF_JOBS: tuple[Callable[[Draft], None], ...] = (
    made_smaller,
    made_smaller_and_larger_again,
    goes_on_smaller_than_it_was,
)
PLANTED_OF_JOBS: dict[Callable[[Draft], None], set[str]] = {
    loses_an_index_that_it_still_has: {"never-back"},
    loses_an_index_as_if_it_were_smaller: {"never-back"},
    has_fewer_successes_than_indexes: {"never-back", "counted"},
    goes_on_from_less_though_it_is_as_large: {"seed"},
}
