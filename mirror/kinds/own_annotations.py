"""Annotations and labels of users that look like ours and are none: most likely misspelt, so nothing follows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.text import clean, nearest

OF_PLACEMENT = (names.WORKER_SELECTOR, names.WORKER_ORDER, names.SPREAD_BY, names.PRIORITY)
"""What of them a worker is chosen by: a change is another request (``controllers.requesting``)."""
OF_USERS = (*OF_PLACEMENT, names.ON_WORKER_LOSS, names.ON_MIRROR_LOSS, names.CARRY)
OF_OURS = (names.HELD, names.ASSIGNED_WORKER, names.WAITING_BECAUSE, names.MIRROR_UID, names.CONDITIONS)
MOST = 5
LONGEST_SHOWN = 100
_DOMAIN = names.PREFIX.rstrip("/")


def mistakes(found: Object, own: Iterable[str], *, but: Collection[str] = ()) -> tuple[str, ...]:
    """What is wrong with the names of its annotations and labels, and what was probably meant; a few of them at most.

    Args:
        found: the source.
        own: annotations that sources of its kind may have besides.
        but: names that are not reported, because they were there before.
    """
    known = (*OF_USERS, *own)
    found_mistakes = (*_unknown(found, known, but), *_misplaced(found, known, but))
    return found_mistakes[:MOST]


def _unknown(found: Object, known: tuple[str, ...], but: Collection[str]) -> Iterator[str]:
    for key in sorted(found.annotations):
        if key in but or key in known or key in OF_OURS or not _looks_like_ours(key):
            continue
        near = nearest(_name(key), map(_name, known))
        yield f"unknown annotation {_shown(key)}" + (f" (did you mean {names.PREFIX}{near}?)" if near else "")


def _misplaced(found: Object, known: tuple[str, ...], but: Collection[str]) -> Iterator[str]:
    for key in sorted(found.labels):
        if key not in but and key in known and key not in found.annotations:
            yield f"label {_shown(key)} has no effect: set it as an annotation"


def _looks_like_ours(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and (domain == _DOMAIN or nearest(domain, (_DOMAIN,)) is not None)


def _name(key: str) -> str:
    return key.partition("/")[2]


def _shown(key: str) -> str:
    return clean(key, longest=LONGEST_SHOWN)
