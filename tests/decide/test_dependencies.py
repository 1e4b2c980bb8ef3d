"""What goes along with a mirror, as values: what is asked for, how a copy looks, and whose an object is (D27)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mirror.decide import dependencies
from mirror.decide.dependencies import Contents, Found, Name
from mirror.kinds.dependencies import BadCarry, DependencyPolicy, Reference, requested_kinds
from mirror.kube.errors import BadAnswer, TooLarge
from mirror.model import names
from mirror.model.reasons import Reason

CONFIG, SECRET, ACCOUNT = Name("ConfigMap", "c"), Name("Secret", "s"), Name("ServiceAccount", "a")
ORIGIN = "here"


def contents(**body: Any) -> Contents:
    metadata = {"name": "x", "namespace": "default", "uid": "u", "resourceVersion": "7"} | body.pop("metadata", {})
    return dependencies.read_contents(msgspec.json.encode({"metadata": metadata, **body}))


def ours(**body: Any) -> Contents:
    marks = {"labels": {names.ORIGIN: ORIGIN}, "annotations": {names.COPY_OF: "u/7"}}
    return contents(metadata=marks | {"uid": "copy", "resourceVersion": "3"}, **body)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        pytest.param(None, set(), id="nothing is asked for"),
        pytest.param("", set(), id="empty"),
        pytest.param("configmaps", {"ConfigMap"}, id="one"),
        pytest.param(" secrets , configmaps,", {"Secret", "ConfigMap"}, id="spaces and an end"),
        pytest.param("serviceaccounts,serviceaccounts", {"ServiceAccount"}, id="twice"),
    ],
)
def test_what_a_user_asks_for(text: str | None, kinds: set[str]) -> None:
    """The annotation's words are the resources' names."""
    assert requested_kinds({} if text is None else {names.CARRY: text}) == kinds


@pytest.mark.parametrize("text", ["configmap", "all", "secrets;configmaps", "pods", "Secrets"])
def test_other_words_are_refused(text: str) -> None:
    """With what may be written."""
    with pytest.raises(BadCarry, match="is unknown; write some of configmaps, secrets, serviceaccounts"):
        requested_kinds({names.CARRY: text})


@pytest.mark.parametrize(
    ("policy", "namespace", "is_allowed"),
    [
        pytest.param(DependencyPolicy(), "a", False, id="off"),
        pytest.param(DependencyPolicy(frozenset(("Secret",))), "a", True, id="all namespaces"),
        pytest.param(DependencyPolicy(frozenset(("Secret",)), ("team-*",)), "team-a", True, id="a glob"),
        pytest.param(DependencyPolicy(frozenset(("Secret",)), ("team-*",)), "a", False, id="not chosen"),
        pytest.param(DependencyPolicy(frozenset(("Secret",)), ("*",), ("home",)), "home", False, id="closed"),
    ],
)
def test_what_an_operator_allows(policy: DependencyPolicy, namespace: str, is_allowed: bool) -> None:
    """Kinds and namespaces; closed ones stay closed."""
    assert bool(policy.allowed(namespace)) is is_allowed


def test_an_object_is_optional_if_every_reference_to_it_is() -> None:
    """And only kinds that go along count."""
    references = (
        Reference("Secret", "s", "one", is_optional=True),
        Reference("Secret", "s", "two"),
        Reference("Secret", "other", "three", is_optional=True),
        Reference("ConfigMap", "c", "four"),
    )
    assert dependencies.requested(references, frozenset(("Secret",))) == {SECRET: False, Name("Secret", "other"): True}


@pytest.mark.parametrize(
    ("original", "text"),
    [
        pytest.param({"type": "kubernetes.io/service-account-token"}, "is of type", id="a token"),
        pytest.param({"type": "bootstrap.kubernetes.io/token"}, "is of type", id="a bootstrap token"),
        pytest.param({"metadata": {"labels": {names.WORKER: "true"}}}, "registers a worker", id="a kubeconfig"),
        pytest.param({"data": {"k": "v" * dependencies.MOST_BYTES}}, "is larger than 1024 KiB", id="large"),
    ],
)
def test_what_may_not_leave(original: dict[str, Any], text: str) -> None:
    """The refusal names the object and nothing that is in it."""
    why = dependencies.judge_originals({SECRET: contents(**original)})
    assert why is not None
    assert why.reason == Reason.DEPENDENCY_REFUSED
    assert why.text.startswith("Secret s ")
    assert text in why.text


def test_what_goes_along_is_bounded_together() -> None:
    """By bytes and by number."""
    large = contents(data={"k": "v" * (dependencies.MOST_BYTES - 1)})
    assert dependencies.judge_originals({Name("ConfigMap", f"c{i}"): large for i in range(4)}) is None
    assert dependencies.judge_originals({Name("ConfigMap", f"c{i}"): large for i in range(5)}) is not None
    assert dependencies.too_many(dependencies.MOST_OBJECTS) is None
    assert dependencies.too_many(dependencies.MOST_OBJECTS + 1) is not None


def test_a_copy_has_the_contents_and_our_marks_and_nothing_else() -> None:
    """Labels, annotations, owners, finalizers and immutability stay here."""
    original = contents(
        metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"]},
        type="Opaque",
        data={"k": "dg=="},
        immutable=True,
        stringData={"x": "y"},
    )
    body = dependencies.copy_body(
        SECRET, original, namespace="p-default", labels={names.ORIGIN: ORIGIN}, notes={"n": "Job/j"}
    )
    assert body == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "s",
            "namespace": "p-default",
            "labels": {names.ORIGIN: ORIGIN},
            "annotations": {names.COPY_OF: "u/7", "n": "Job/j"},
        },
        "type": "Opaque",
        "data": {"k": "dg=="},
    }


def test_a_copy_of_an_account_has_no_secrets_of_its_own() -> None:
    """Its tokens and rights stay here."""
    original = contents(
        secrets=[{"name": "token"}], imagePullSecrets=[{"name": "r"}], automountServiceAccountToken=False
    )
    body = dependencies.copy_body(ACCOUNT, original, namespace="default", labels={names.ORIGIN: ORIGIN}, notes={})
    del body["metadata"]
    assert body == {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "imagePullSecrets": [{"name": "r"}],
        "automountServiceAccountToken": False,
    }


@pytest.mark.parametrize(
    ("name", "there", "original", "found"),
    [
        pytest.param(CONFIG, ours(data={"k": "w"}), contents(data={"k": "v"}), Found.OURS, id="ours, changed"),
        pytest.param(CONFIG, contents(data={"k": "v"}), contents(data={"k": "v"}), Found.SAME, id="the same"),
        pytest.param(CONFIG, contents(data={}), contents(), Found.SAME, id="nothing and empty"),
        pytest.param(CONFIG, contents(binaryData={"k": "dg=="}), contents(), Found.FOREIGN, id="other binary data"),
        pytest.param(CONFIG, contents(data={"k": "w"}), contents(data={"k": "v"}), Found.FOREIGN, id="other data"),
        pytest.param(SECRET, contents(type="a"), contents(type="b"), Found.FOREIGN, id="another type"),
        pytest.param(
            ACCOUNT, contents(automountServiceAccountToken=False), contents(), Found.SAME, id="any ServiceAccount"
        ),
        pytest.param(
            CONFIG,
            contents(metadata={"labels": {names.ORIGIN: ORIGIN}}, data={"k": "w"}),
            contents(),
            Found.FOREIGN,
            id="our label alone",
        ),
    ],
)
def test_whose_an_object_is(name: Name, there: Contents, original: Contents, found: Found) -> None:
    """D1: both marks, or it is not ours."""
    assert dependencies.identify_copy(name, there, original, origin=ORIGIN) is found


@pytest.mark.parametrize(
    ("there", "original", "changed"),
    [
        pytest.param({"data": {"k": "v"}}, {"data": {"k": "v"}}, [], id="alike"),
        pytest.param({"data": {"k": "v"}}, {"data": {"k": "w"}}, [("add", "/data", {"k": "w"})], id="changed"),
        pytest.param({"data": {"k": "v"}}, {}, [("remove", "/data", None)], id="all keys removed"),
        pytest.param({}, {"binaryData": {"k": "dg=="}}, [("add", "/binaryData", {"k": "dg=="})], id="a new part"),
    ],
)
def test_an_update_replaces_whole_parts(
    there: dict[str, Any], original: dict[str, Any], changed: list[tuple[str, str, Any]]
) -> None:
    """Guarded by the version of the copy."""
    operations = dependencies.update_operations(CONFIG, ours(**there), contents(**original))
    found = [(one["op"], one["path"], one.get("value")) for one in operations]
    guard = [("replace", "/metadata/resourceVersion", "3")] if changed else []
    assert found == guard + changed


def test_an_original_that_was_made_anew_is_noted() -> None:
    """Its contents are the same, its uid is not."""
    operations = dependencies.update_operations(CONFIG, ours(), contents(metadata={"uid": "other"}))
    assert [one["path"] for one in operations][1:] == ["/metadata/annotations/jobmirror.io~1copy-of"]


@pytest.mark.parametrize(
    ("name", "there", "original", "is_other"),
    [
        pytest.param(SECRET, {"type": "Opaque"}, {"type": "kubernetes.io/dockerconfigjson"}, True, id="another type"),
        pytest.param(SECRET, {"type": "a/b"}, {"type": "a/b", "data": {"k": "dg=="}}, False, id="other data alone"),
        pytest.param(SECRET, {"type": "Opaque"}, {}, False, id="the default, written or not"),
        pytest.param(CONFIG, {"type": "x"}, {}, False, id="only Secrets have one"),
    ],
)
def test_a_type_that_never_changes(name: Name, there: dict[str, Any], original: dict[str, Any], is_other: bool) -> None:
    """No update reaches it (core/v1 Secret: ``type`` is immutable)."""
    assert dependencies.is_of_another_type(name, ours(**there), contents(**original)) is is_other


def test_a_copy_that_is_made_anew_keeps_who_needs_it() -> None:
    """Owners and notes are of other sources: without them the worker's collector, or the sweep, would delete it."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "m"}
    notes = {names.COPY_OF: "u/7", dependencies.note_of("one"): "Job/one", "theirs": "x"}
    labels = {names.ORIGIN: ORIGIN, "theirs": "x"}
    there = contents(metadata={"ownerReferences": [owner], "annotations": notes, "labels": labels}, type="Opaque")
    original = contents(metadata={"uid": "new"}, type="a/b", data={"k": "dg=="})
    body = dependencies.body_made_anew(
        SECRET, there, original, namespace="default", labels={names.ORIGIN: ORIGIN}, notes={"two": "Job/two"}
    )
    assert body == {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "a/b",
        "data": {"k": "dg=="},
        "metadata": {
            "name": "s",
            "namespace": "default",
            "labels": {names.ORIGIN: ORIGIN},
            "annotations": {names.COPY_OF: "new/7", dependencies.note_of("one"): "Job/one", "two": "Job/two"},
            "ownerReferences": [owner],
        },
    }


def test_a_note_becomes_an_owner() -> None:
    """One patch, of this object only; others' notes and owners stay."""
    patch = dependencies.own_patch("copy", "source", {"kind": "Job", "uid": "mirror"})
    assert patch["metadata"]["uid"] == "copy"
    assert patch["metadata"]["annotations"] == {f"{names.COPIED_FOR}source": None}
    assert patch["metadata"]["ownerReferences"] == [{"kind": "Job", "uid": "mirror"}]
    noted = contents(metadata={"annotations": {dependencies.note_of("source"): "Job/train", "other": "x"}})
    assert dependencies.notes_on(noted.metadata) == {"source": ("Job", "train")}


def test_what_is_missing_is_named_in_order_and_bounded() -> None:
    """D21: the text does not change from look to look."""
    few = dependencies.missing([SECRET, CONFIG])
    assert few is not None
    assert few.text == "ConfigMap c, Secret s do not exist in the Job's namespace"
    many = dependencies.missing([Name("Secret", f"s{i}") for i in range(9)])
    assert many is not None
    assert many.text == "Secret s0, Secret s1, Secret s2 and others do not exist in the Job's namespace"


def test_what_cannot_be_read_is_no_object() -> None:
    """Nothing of the answer is in the error."""
    with pytest.raises(BadAnswer):
        dependencies.read_contents(b'{"metadata": {}, "data": {"k": 1}}')
    with pytest.raises(TooLarge):
        dependencies.read_contents(b'{"metadata": {}, "data": {"k": "' + b"x" * 5_000_000 + b'"}}')
