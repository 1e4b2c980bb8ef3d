"""Copies of what a source's pods refer to: what is asked for, how a copy looks, what an object there is. Pure (D27).

``controllers.dependencies`` makes the requests. Nothing here puts contents into a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import msgspec

from mirror.decide.identity import is_of_another_cluster
from mirror.kinds.dependencies import RESOURCES, Reference
from mirror.kube.errors import BadAnswer, TooLarge
from mirror.kube.objects import JUNK, Meta, is_too_large
from mirror.kube.resources import SECRETS, SERVICE_ACCOUNTS
from mirror.model import names
from mirror.model.reasons import Obstruction, Reason

MOST_OBJECTS = 50
"""That one source's pods may refer to."""
MOST_BYTES = 1024 * 1024
"""Of one object's contents, as they are sent."""
MOST_BYTES_TOGETHER = 4 * 1024 * 1024
MOST_OWNERS = 500
"""Of one copy. Further mirrors are noted without being owners."""
MOST_NAMED = 3
"""Objects that one text names."""
_OPAQUE = "Opaque"
"""The type of a Secret that says none."""
_NEVER = ("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token")
"""Types of Secrets that say who somebody is."""


class Name(msgspec.Struct, frozen=True, order=True):
    """An object that goes along, in the namespace of its source."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Contents(msgspec.Struct, frozen=True, rename="camel"):
    """A ConfigMap, Secret or ServiceAccount, with all of it that is copied and compared."""

    metadata: Meta
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None
    type: str = ""
    image_pull_secrets: list[dict[str, str]] | None = None
    automount_service_account_token: bool | None = None

    @property
    def version(self) -> str:
        """Which object this is, and when: as a copy notes it."""
        return f"{self.metadata.uid}/{self.metadata.resource_version}"

    @property
    def size(self) -> int:
        """Bytes of what is copied; base64 as it is sent."""
        parts = (self.data or {}, self.binary_data or {})
        return sum(len(key.encode()) + len(value.encode()) for part in parts for key, value in part.items())

    @property
    def is_labeled_worker(self) -> bool:
        return names.WORKER in (self.metadata.labels or {})


_decode = msgspec.json.Decoder(Contents).decode


def read_contents(raw: bytes) -> Contents:
    """Decode one object.

    Raises:
        TooLarge: it has more bytes or values than one object may have.
        BadAnswer: it is none.
    """
    if is_too_large(raw):
        raise TooLarge("an object that is too large to be copied")
    try:
        return _decode(raw)
    except JUNK:
        raise BadAnswer("the response is no object that can be copied") from None


def requested(references: Iterable[Reference], kinds: frozenset[str]) -> dict[Name, bool]:
    """What goes along, each object once, and whether pods run without it."""
    found: dict[Name, bool] = {}
    for one in references:
        if one.kind in kinds:
            name = Name(one.kind, one.name)
            found[name] = found.get(name, True) and one.is_optional
    return found


def pull_secrets(originals: Mapping[Name, Contents]) -> dict[Name, bool]:
    """The Secrets that ServiceAccounts among these name for pulling images; pods run without them, too."""
    return {
        Name(SECRETS.kind, name): True
        for original in originals.values()
        for one in original.image_pull_secrets or ()
        if (name := one.get("name", ""))
    }


def too_many(count: int) -> Obstruction | None:
    """Why a source may not refer to so many objects."""
    if count <= MOST_OBJECTS:
        return None
    return _refused(f"it refers to more than {MOST_OBJECTS} objects that are to go along")


def missing(lacking: Iterable[Name]) -> Obstruction | None:
    """Why pods cannot run without these."""
    named = sorted(lacking)
    if not named:
        return None
    shown = ", ".join(map(str, named[:MOST_NAMED])) + (" and others" if len(named) > MOST_NAMED else "")
    are = "do not exist" if len(named) > 1 else "does not exist"
    return Obstruction(Reason.DEPENDENCY_MISSING, f"{shown} {are} in the Job's namespace")


def unreadable(name: Name, why: str) -> Obstruction:
    """An object cannot be read where the source is."""
    return _refused(f"{name} cannot be read on the management cluster: {why}")


def judge_originals(originals: Mapping[Name, Contents]) -> Obstruction | None:
    """What of these may not leave the management cluster; None: all may."""
    for name, original in sorted(originals.items()):
        if original.type in _NEVER:
            return _refused(f"{name} is of type {original.type}, which is never copied")
        if original.is_labeled_worker:
            return _refused(f"{name} registers a worker, and is never copied")
        if original.size > MOST_BYTES:
            return _refused(f"{name} is larger than {MOST_BYTES // 1024} KiB")
    if sum(original.size for original in originals.values()) > MOST_BYTES_TOGETHER:
        return _refused(f"what goes along is larger than {MOST_BYTES_TOGETHER // 1024} KiB together")
    return None


def _refused(text: str) -> Obstruction:
    return Obstruction(Reason.DEPENDENCY_REFUSED, text)


# -- copies ------------------------------------------------------------------------------------------------------------


def note_of(source_uid: str) -> str:
    """The annotation that holds a copy for a source which has no mirror yet."""
    return names.COPIED_FOR + source_uid


def copy_body(
    name: Name, original: Contents, *, namespace: str, labels: Mapping[str, str], notes: Mapping[str, str]
) -> Any:
    """A whole copy as it is created: the contents, and nothing of the original's labels, annotations and owners.

    They may mean something to the worker's controllers and, on a ServiceAccount, be rights.
    """
    metadata = {
        "name": name.name,
        "namespace": namespace,
        "labels": dict(labels),
        "annotations": {names.COPY_OF: original.version, **notes},
    }
    resource = RESOURCES[name.kind]
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    kind_of_secret = {"type": original.type} if original.type else {}
    return head | kind_of_secret | {key: value for key, value in _parts(name, original).items() if value is not None}


def is_of_another_type(name: Name, there: Contents, original: Contents) -> bool:
    """Whether no update makes this copy like its original: the type of a Secret never changes."""
    return name.kind == SECRETS.kind and (there.type or _OPAQUE) != (original.type or _OPAQUE)


def body_made_anew(
    name: Name,
    there: Contents,
    original: Contents,
    *,
    namespace: str,
    labels: Mapping[str, str],
    notes: Mapping[str, str],
) -> Any:
    """A whole copy that takes the place of another, with its owners and notes: who needed that one needs this one."""
    kept = {key: value for key, value in (there.metadata.annotations or {}).items() if key.startswith(names.COPIED_FOR)}
    body = copy_body(name, original, namespace=namespace, labels=labels, notes={**kept, **notes})
    if owners := msgspec.to_builtins(there.metadata.owner_references or []):
        body["metadata"]["ownerReferences"] = owners
    return body


class Found(Enum):
    """What an object on a worker is that has the name of a copy."""

    OURS = "ours"
    SAME = "same"
    """Not ours, with the same contents: it is used as it is."""
    FOREIGN = "foreign"
    """Not ours, with other contents."""


def identify_copy(name: Name, there: Contents, original: Contents, *, origin: str, management_uid: str = "") -> Found:
    """Judge an object.

    A ServiceAccount that is not ours is always used as it is: what it may do is the worker's.
    """
    if is_copy(there.metadata, origin=origin, management_uid=management_uid):
        return Found.OURS
    if name.kind == SERVICE_ACCOUNTS.kind or _is_same(name, there, original):
        return Found.SAME
    return Found.FOREIGN


def is_copy(metadata: Meta, *, origin: str, management_uid: str = "") -> bool:
    """Whether an object has the marks of a copy of ours."""
    labels = metadata.labels or {}
    is_marked = labels.get(names.ORIGIN) == origin and names.COPY_OF in (metadata.annotations or {})
    return is_marked and not is_of_another_cluster(labels, management_uid)


def update_operations(name: Name, there: Contents, original: Contents) -> list[Mapping[str, Any]]:
    """The JSON Patch that makes a copy of ours like its original; empty: it is."""
    stored, wanted = _parts(name, there), _parts(name, original)
    noted = (there.metadata.annotations or {}).get(names.COPY_OF)
    operations: list[Mapping[str, Any]] = [
        {"op": "add", "path": f"/{field}", "value": value}
        if value is not None
        else {"op": "remove", "path": f"/{field}"}
        for field, value in wanted.items()
        if stored[field] != value
    ]
    if noted != original.version:
        path = f"/metadata/annotations/{names.COPY_OF.replace('/', '~1')}"
        operations.append({"op": "add", "path": path, "value": original.version})
    if not operations:
        return []
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": there.metadata.resource_version}
    return [version, *operations]


def own_patch(copy_uid: str, source_uid: str, owner: Mapping[str, str]) -> dict[str, Any]:
    """The strategic merge patch that makes a mirror an owner of a copy, in place of the note; others stay owners."""
    annotations = {note_of(source_uid): None}
    return {"metadata": {"uid": copy_uid, "annotations": annotations, "ownerReferences": [dict(owner)]}}


def notes_on(metadata: Meta) -> dict[str, tuple[str, str]]:
    """The sources that a copy is held for by a note: uid → kind and name."""
    found = {}
    for key, value in (metadata.annotations or {}).items():
        if key.startswith(names.COPIED_FOR):
            kind, _, name = value.partition("/")
            found[key.removeprefix(names.COPIED_FOR)] = (kind, name)
    return found


def _parts(name: Name, found: Contents) -> dict[str, Any]:
    if name.kind == SERVICE_ACCOUNTS.kind:
        return {
            "imagePullSecrets": found.image_pull_secrets,
            "automountServiceAccountToken": found.automount_service_account_token,
        }
    parts: dict[str, Any] = {"data": found.data}
    return parts if name.kind == SECRETS.kind else {**parts, "binaryData": found.binary_data}


def _is_same(name: Name, there: Contents, original: Contents) -> bool:
    if is_of_another_type(name, there, original):
        return False
    stored, wanted = _parts(name, there), _parts(name, original)
    return all((stored[field] or None) == (value or None) for field, value in wanted.items())
