"""Annotations and labels that look like ours and are none: most likely misspelt, so nothing follows them.

Those of Jobs, and (``wrong_names``) those of whatever else people annotate for us: workers' Secrets, Namespaces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice

from mirror.batch import views
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.losses import OnLoss, OnMirrorLoss
from mirror.model.text import LONGEST_COMPARED, clean, nearest

OF_PLACEMENT = (names.WORKER_SELECTOR, names.WORKER_ORDER, names.SPREAD_BY, names.PRIORITY)
"""What of them a worker is chosen by: a change is another request (``controllers.requesting``)."""
OF_USERS = (*OF_PLACEMENT, names.ON_WORKER_LOSS, names.ON_MIRROR_LOSS, names.CARRY)
OF_OURS = (
    names.HELD,
    names.ASSIGNED_WORKER,
    names.MANAGER,
    names.WAITING_BECAUSE,
    names.MIRROR_UID,
    names.CONDITIONS,
)
_CHOICES: Mapping[str, tuple[str, ...]] = {
    names.ON_WORKER_LOSS: tuple(OnLoss),
    names.ON_MIRROR_LOSS: tuple(OnMirrorLoss),
}
"""Words that a value may be; the first holds for any other."""
OUR_LABELS = (names.ORIGIN, names.SOURCE_UID, names.MANAGEMENT_UID)
"""Of mirrors: who makes a source of one's manifest has done nothing wrong."""
MOST = 5
MOST_JUDGED = 200
"""Names of annotations of an object, and of labels, that are compared with ours: there may be tens of thousands, each
with a domain of its own, and everybody else waits meanwhile. Names that are exactly ours do not count."""
LONGEST_SHOWN = 100
_DOMAIN = names.PREFIX.rstrip("/")


def mistakes(found: Object, own: Iterable[str], *, but: Collection[str] = ()) -> tuple[str, ...]:
    """What is wrong with the names of its annotations and labels, and what was probably meant; a few of them at most.

    Args:
        found: the source.
        own: annotations that sources of its kind may have besides.
        but: names that are not reported, because they were there before.
    """
    annotations = (key for key in found.annotations if key not in but)
    labels = (key for key in found.labels if key not in but)
    return _first(found, (*OF_USERS, *own), annotations, labels, but)


def mistakes_since(old: Object, new: Object, own: Iterable[str]) -> tuple[str, ...]:
    """The same of annotations and labels that a user has changed; costs next to nothing where none has."""
    both = (old.annotations, new.annotations), (old.labels, new.labels)
    annotations, labels = (_changed(before, after) for before, after in both)
    if not annotations and not labels:
        return ()
    known = (*OF_USERS, *own)
    there = [key for key in known if key in new.annotations or key in new.labels]
    but = [key for key in there if not any(_is_changed(key, before, after) for before, after in both)]
    return _first(new, known, annotations, labels, but)


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """As many as are judged at most."""
    if before == after:
        return []
    changed = (key for key, value in after.items() if before.get(key) != value and key not in OF_OURS)
    return list(islice(changed, MOST_JUDGED))


def _is_changed(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    return key in after and before.get(key) != after[key]


def _first(
    found: Object, known: tuple[str, ...], annotations: Iterable[str], labels: Iterable[str], but: Collection[str]
) -> tuple[str, ...]:
    """A few mistakes; what comes after them is not looked for.

    Args:
        found: the source.
        known: names of annotations that mean something.
        annotations: names of those to judge, in any order.
        labels: likewise.
        but: those of the known names that are not reported.
    """
    found_mistakes = chain(
        _unknown(annotations, known),
        _without_effect(found, but),
        _misplaced(found, labels, known, but),
        _on_template(found, known, but),
    )
    return tuple(islice(found_mistakes, MOST))


def wrong_names(annotations: Iterable[str], known: Collection[str], *, others: Collection[str] = ()) -> tuple[str, ...]:
    """What is wrong with the names of annotations of something that is no source; a few at most.

    Args:
        annotations: their names.
        known: those that mean something there.
        others: ours that may be there as well, and of which nothing is said.
    """
    return tuple(islice(_unknown((key for key in annotations if key not in others), tuple(known)), MOST))


def _unknown(annotations: Iterable[str], known: tuple[str, ...]) -> Iterator[str]:
    for key in _judged(annotations, (*known, *OF_OURS)):
        if _is_without_prefix(key, known):
            yield f"annotation {key} has no effect (did you mean {names.PREFIX}{key}?)"
        elif _looks_like_ours(key):
            near = nearest(_name(key), map(_name, known))
            yield f"unknown annotation {_shown(key)}" + (f" (did you mean {names.PREFIX}{near}?)" if near else "")


def _judged(keys: Iterable[str], but: Collection[str]) -> list[str]:
    return sorted(islice((key for key in keys if key not in but), MOST_JUDGED))


def _is_without_prefix(key: str, known: tuple[str, ...]) -> bool:
    """One word may be anybody's: only names of several are taken for ours."""
    return "-" in key and "/" not in key and names.PREFIX + key in known


def _without_effect(found: Object, but: Collection[str]) -> Iterator[str]:
    """What becomes of a lost worker or mirror is asked for once that has happened: too late to learn of a mistake."""
    for key, words in _CHOICES.items():
        value = found.annotations.get(key)
        if value is not None and value not in words and key not in but:
            near = nearest(value, words)
            hint = f" (did you mean {near}?)" if near else ""
            yield f"annotation {key}: '{_shown(value)}' is unknown{hint}; {words[0]} holds"


def _on_template(found: Object, known: tuple[str, ...], but: Collection[str]) -> Iterator[str]:
    """Annotations of a pod template are for pods; without decoding the spec of one that has none of ours."""
    spec = bytes(found.spec)
    named = [key for key in known if key not in but and f'"{key}"'.encode() in spec]
    annotated = _template_annotations(found) if named else ()
    for key in named:
        if key in annotated:
            yield f"annotation {key} of the pod template has no effect: set it in metadata.annotations"


def _template_annotations(found: Object) -> Collection[str]:
    template = views.mapping(found.spec_dict().get("template"))
    return views.mapping(views.mapping(template.get("metadata")).get("annotations")).keys()


def _misplaced(found: Object, labels: Iterable[str], known: tuple[str, ...], but: Collection[str]) -> Iterator[str]:
    """A label never says anything to us, whether its name is right or misspelt; not of what is an annotation, too."""
    annotations = found.annotations
    for key in known:
        if key in found.labels and key not in annotations and key not in but:
            yield f"label {_shown(key)} has no effect: set it as an annotation"
    for key in _judged((key for key in labels if key not in annotations), (*known, *OF_OURS, *OUR_LABELS)):
        if _is_without_prefix(key, known):
            yield f"label {_shown(key)} has no effect (did you mean the annotation {names.PREFIX}{key}?)"
        elif _looks_like_ours(key):
            near = nearest(_name(key), map(_name, known))
            hint = f" (did you mean the annotation {names.PREFIX}{near}?)" if near else ""
            yield f"label {_shown(key)} has no effect{hint}"


def _looks_like_ours(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and _is_near_ours(domain[:LONGEST_COMPARED])


@lru_cache(maxsize=1024)
def _is_near_ours(domain: str) -> bool:
    """Of a domain, cut so that what is kept is bounded: most objects have the same few."""
    return domain == _DOMAIN or nearest(domain, (_DOMAIN,)) is not None


def _name(key: str) -> str:
    return key.partition("/")[2]


def _shown(key: str) -> str:
    return clean(key, longest=LONGEST_SHOWN)
