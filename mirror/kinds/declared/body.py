"""The mirror of an object whose kind is data: what is carried to a worker, and what of it follows later (D4, D9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice

import msgspec

from mirror.batch import views
from mirror.kinds import queueing
from mirror.kinds.base import Json, MirrorTransform
from mirror.kinds.carried import Carried, Part, carried_of, contains, digest, read, without, without_keys
from mirror.kinds.declared.form import Form
from mirror.kinds.following import Followed
from mirror.kinds.metadata import mirror_annotations, mirror_labels
from mirror.kube.objects import Object
from mirror.model import field_paths, names
from mirror.model.field_paths import FieldPath, Place

_LABELS = Part("labels", ("metadata", "labels"), is_map=True)
_ANNOTATIONS = Part("annotations", ("metadata", "annotations"), is_map=True)
_NAMES_OF_ELEMENTS = ("name", "groupName")
"""What tells elements of a list apart, where it is there."""
MOST_OWN_OF_WORKER = 64
"""Elements of a mirror's lists that are taken for its worker's own: who writes more loses the others (D29)."""
_KEPT = frozenset((names.ORIGIN, names.SOURCE_UID, names.MANAGEMENT_UID))
"""Labels of ours that are carried like a user's."""


def mirror_body(form: Form, source: Object, *, namespace: str, transform: MirrorTransform) -> dict[str, Json]:
    """The whole mirror of a source, as it is created (D4)."""
    body: dict[str, Json] = {
        "apiVersion": form.resource.api_version,
        "kind": form.resource.kind,
        "metadata": {
            "name": source.metadata.name,
            "namespace": namespace,
            "labels": mirror_labels(source, transform),
            "annotations": mirror_annotations(source, transform),
        },
        "spec": carried_spec(form, source.spec_dict()),
    }
    body = {**body, "metadata": _without_theirs(form, body["metadata"])}
    body = _in_namespace(form, body, source.metadata.namespace)
    unchanged = body
    for place in _templates_of(form, body):
        template = field_paths.at(body, place)
        if (changed := queueing.template_for_worker(template, transform)) != template:
            body = field_paths.put(body, place, changed)
    body = _with_pod_labels(form, body, transform.pod_labels(source))
    body = _without_theirs_within(form, body)
    parts = _parts(form, body, unchanged)
    values = _values(form, body, parts)
    sources = _values(form, unchanged, parts) if body["spec"] != unchanged["spec"] else values
    note = carried_of(values, parts, source=sources).as_text()
    noted: dict[str, Json] = field_paths.put(body, ("metadata", "annotations", names.CARRIED), note)
    return noted


def _with_pod_labels(form: Form, body: dict[str, Json], pod_labels: dict[str, str]) -> dict[str, Json]:
    """With these labels in each pod template, beside those that are there (D22)."""
    if pod_labels:
        for place in _places_of_pod_labels(form, body):
            labels = views.mapping(field_paths.at(body, place))
            body = field_paths.put(body, place, {**labels, **pod_labels})
    return body


def _in_namespace(form: Form, body: Json, before: str) -> dict[str, Json]:
    """What names the source's namespace as its own names that of the mirror (D19)."""
    namespace = body["metadata"]["namespace"]
    if namespace != before:
        for place in [place for path in form.namespaces for place in path.places(body)]:
            if field_paths.at(body, place) == before:
                body = field_paths.put(body, place, namespace)
    found: dict[str, Json] = body
    return found


def carried_spec(form: Form, spec: dict[str, Json]) -> dict[str, Json]:
    """A source's spec as it is sent: stripped, and replaced; one that runs says so where the kind has words for it."""
    body: Json = {"spec": spec}
    for path in form.strip:
        body = field_paths.strip(body, path)
    for place, value in form.replacements(body):
        body = field_paths.put(body, place, value)
    suspend = form.suspend
    running = form.entry.suspend.running
    if suspend is not None and running is not None and suspend.first(body) is None:
        body = field_paths.put(body, tuple(name for name, _ in suspend.steps), running)
    found: dict[str, Json] = body["spec"]
    return found


def suspended(form: Form, source: Object) -> Object:
    """A source as if its user had suspended it; the same where it is suspended, or nothing suspends it."""
    spec = source.spec_dict()
    if form.suspend is None or form.is_held(spec):
        return source
    place = tuple(name for name, _ in form.suspend.steps)
    changed = field_paths.put({"spec": spec}, place, form.entry.suspend.held)
    return msgspec.structs.replace(source, spec=msgspec.Raw(msgspec.json.encode(changed["spec"])))


def is_held_by_us(form: Form, mirror: Object) -> bool:
    """Whether a mirror is suspended as it was sent, by its note, and not by somebody on its worker."""
    suspend = _suspend_of(form)
    if suspend is None or not form.is_held(mirror.spec_dict()):
        return False
    sent = carried_of({suspend.name: form.entry.suspend.held}, (suspend,))
    return Carried.of_text(mirror.annotations.get(names.CARRIED)).digest_of(suspend) == sent.digest_of(suspend)


def with_own_of_worker(form: Form, body: dict[str, Json], mirror: Object) -> dict[str, Json]:
    """A mirror as it is wanted, with those elements that none is sent, as this one has them (D26).

    They are of the worker's own controllers, and a list that follows is written whole: Kueue there starts no TrainJob
    whose patches lack its own, which it adds only when one is created.
    """
    chosen = [path for path in form.strip if path.key]
    there: Json = {"spec": mirror.spec_dict()} if chosen else {}
    theirs: dict[Place, list[Json]] = {}
    for place in islice((place for path in chosen for place in path.places(there)), MOST_OWN_OF_WORKER):
        theirs.setdefault(place[:-1], []).append(field_paths.at(there, place))
    for where, found in theirs.items():
        listed = field_paths.at(body, where)
        if isinstance(listed, list) or (listed is None and all(isinstance(step, str) for step in where)):
            body = field_paths.put(body, where, [*(listed or ()), *found])
    return body


def with_spec_noted(form: Form, body: dict[str, Json], source: Object) -> dict[str, Json]:
    """A mirror as it is created, with a note of what never follows, which ``carries_spec`` compares."""
    noted = digest(_never_following(form, source.spec_dict()))
    found: dict[str, Json] = field_paths.put(body, ("metadata", "annotations", names.CARRIED_SPEC), noted)
    return found


def carries_spec(form: Form, source: Object, mirror: Object) -> bool:
    """Whether a mirror was sent all of its source's present spec, whatever settings and clusters have made of it (D9).

    By the notes: what was sent contains a spec of which something was removed, and lacks what settings leave out. Where
    there is none, by the specs.
    """
    spec, found = source.spec_dict(), mirror.spec_dict()
    fixed, noted = _never_following(form, spec), mirror.annotations.get(names.CARRIED_SPEC)
    if not (contains(found, fixed) if noted is None else noted == digest(fixed)):
        return False
    body: dict[str, Json] = {
        "metadata": {"namespace": mirror.metadata.namespace},
        "spec": carried_spec(form, spec),
    }
    body = _in_namespace(form, body, source.metadata.namespace)
    parts = tuple(part for part in _parts(form, body, body) if part not in (_LABELS, _ANNOTATIONS))
    values = _values(form, body, parts)
    wanted, carried = carried_of(values, parts).parts, Carried.of_text(mirror.annotations.get(names.CARRIED))
    if carried.parts.keys() - {part.name for part in parts} - {_LABELS.name, _ANNOTATIONS.name}:
        return False  # something was removed, and is there still
    for part in parts:
        before = carried.digest_of(part)
        if before is None and not contains(read({"spec": found}, part.path), values[part.name]):
            return False
        if before is not None and before != (wanted[part.name].digest if part.name in wanted else ""):
            return False
    return True


def _never_following(form: Form, spec: dict[str, Json]) -> Json:
    """What of a spec a mirror has as it was when it was created, and its worker's controllers do not write."""
    body: Json = {"spec": carried_spec(form, spec)}
    for path in (*form.theirs_of(body), *form.always, *form.suspended, *filter(None, (form.suspend,))):
        for place in reversed(list(path.places(body))):
            body = field_paths.without(body, place)
            # What is empty now is as if it were not there: what follows may be the first below it.
            while len(place) > 2 and isinstance(place[-2], str) and field_paths.at(body, place := place[:-1]) == {}:
                body = field_paths.without(body, place)
    return body["spec"]


def followed(form: Form) -> Followed:
    """What of this kind follows."""
    return Followed(
        parts=lambda want, have: _parts(form, want, have),
        values=lambda body, parts: _values(form, body, parts),
        template_is_mutable=lambda body: form.suspend is None or form.is_held(views.mapping(body.get("spec"))),
        suspend=_suspend_of(form),
        is_admitted=lambda body: queueing.is_admitted(_noted_by_queues(form, body)),
        pod_labels=lambda body: _places_of_pod_labels(form, body),
        held=form.entry.suspend.held,
    )


def _suspend_of(form: Form) -> Part | None:
    if form.suspend is None:
        return None
    return Part("suspend", tuple(name for name, _ in form.suspend.steps))


def _parts(form: Form, want: Json, have: Json) -> tuple[Part, ...]:
    """All parts of an object; a part that either side has as a map is one that others may add keys to."""
    suspend = _suspend_of(form)
    listed = {part.path: part for part in (_LABELS, _ANNOTATIONS, suspend) if part is not None}
    theirs = {place for path in form.theirs_of(want) for body in (want, have) for place in path.places(body)}
    for paths, needs_mutable in ((form.always, False), (form.suspended, True)):
        for place in (place for path in paths for body in (want, have) for place in path.places(body)):
            if place not in listed and place not in theirs and _is_of_same_elements(place, want, have):
                is_map = any(isinstance(read(body, place), dict) for body in (want, have))
                listed[place] = Part(
                    field_paths.written(place), place, is_map=is_map, needs_mutable_template=needs_mutable
                )
    return tuple(listed.values())


def _is_of_same_elements(place: tuple[str | int, ...], want: Json, have: Json) -> bool:
    """Whether a place is in the same elements of both: nothing follows into one that only one of them has."""
    for depth in (at for at, step in enumerate(place, start=1) if isinstance(step, int)):
        one, other = read(want, place[:depth]), read(have, place[:depth])
        if not isinstance(one, dict) or not isinstance(other, dict):
            return False
        if any(one.get(name) != other.get(name) for name in _NAMES_OF_ELEMENTS):
            return False
    return True


def _values(form: Form, body: Json, parts: tuple[Part, ...]) -> dict[str, Json]:
    """What a mirror has, or is to have, at these parts; of its metadata what its worker's controllers wrote as well.

    The latter is nothing that was carried, and stays like all that others have added: a patch writes a map whole.
    """
    values = {part.name: read(body, part.path) for part in parts}
    for name in ("labels", "annotations"):
        found = read(body, ("metadata", name)) or {}
        values[name] = {key: value for key, value in found.items() if not key.startswith(names.PREFIX) or key in _KEPT}
    # Ours are there only on mirrors that were created while pods are watched.
    ours = _places_of_pod_labels(form, body)
    for part in parts:
        if part.path in ours and (labels := values[part.name]):
            values[part.name] = without_keys(labels, _KEPT) or None
        elif above := [place for place in ours if place[: len(part.path)] == part.path]:
            values[part.name] = read(_without_pod_labels(body, above), part.path)
    return values


def _without_pod_labels(body: Json, places: Iterable[Place]) -> Json:
    """Without our labels at these places; what is empty then is as if it were not there."""
    for place in places:
        labels = without_keys(views.mapping(field_paths.at(body, place)), _KEPT)
        if labels:
            body = field_paths.put(body, place, labels)
            continue
        body = field_paths.without(body, place)
        if field_paths.at(body, place[:-1]) == {}:
            body = field_paths.without(body, place[:-1])
    return body


def _places_of_pod_labels(form: Form, body: Json) -> tuple[Place, ...]:
    return tuple((*place, "metadata", "labels") for place in _templates_of(form, body))


def _templates_of(form: Form, body: Json) -> list[tuple[str | int, ...]]:
    """Where its pod templates are; a template that is none is left alone."""
    places = (place for path in form.templates for place in path.places(body))
    return [place for place in places if isinstance(field_paths.at(body, place), dict)]


def _noted_by_queues(form: Form, body: Json) -> Iterator[Json]:
    """Where a queue leaves its note: pod templates, and what an AppWrapper has in place of them (``podSetInfos``)."""
    yield from (field_paths.at(body, place) for place in _templates_of(form, body))
    for place in (place for path in form.strip for place in path.places(body)):
        yield from ({"metadata": one} for one in views.items(field_paths.at(body, place)))


def _without_theirs(form: Form, metadata: dict[str, Json]) -> dict[str, Json]:
    kept = {field: without(metadata[field], partial(_is_theirs, form, field)) for field in ("labels", "annotations")}
    return {**metadata, **kept}


def _without_theirs_within(form: Form, body: dict[str, Json]) -> dict[str, Json]:
    """Without what controllers there write within a part that follows whole: it would differ for ever (D26).

    The note is of the part as the source has it, with that.
    """
    theirs = [place for path in form.theirs_of(body) for place in path.places(body)]
    if theirs:
        carried = {place for path in (*form.always, *form.suspended) for place in path.places(body)}
        for place in reversed(theirs):
            if any(place[:depth] in carried for depth in range(1, len(place))):
                body = field_paths.without(body, place)
    return body


def _is_theirs(form: Form, field: str, key: str) -> bool:
    return any(_names_of(path, field) and fnmatchcase(key, path.value) for path in form.theirs)


def _names_of(path: FieldPath, field: str) -> bool:
    return tuple(name for name, _ in path.steps) == ("metadata", field) and bool(path.value)
