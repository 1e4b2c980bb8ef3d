"""Until when it holds that a worker is declared dead, whatever becomes of the object that says so (D14)."""

from __future__ import annotations

import msgspec
import pytest

from mirror.kube.objects import Object, decode_object
from mirror.model import names
from mirror.workers.gone_record import gone_by, is_declared_dead
from mirror.workers.inventory import Entry, WorkerInventory, encode


def secret(uid: str, word: str | None) -> Object:
    """What declares worker east."""
    annotations = {} if word is None else {names.GONE: word}
    return decode_object(msgspec.json.encode({"metadata": {"name": "east", "uid": uid, "annotations": annotations}}))


@pytest.mark.parametrize(
    ("known", "said", "is_connected", "remembered"),
    [
        pytest.param("", secret("a", "true"), False, "a", id="somebody says so"),
        pytest.param("", secret("a", " True "), False, "a", id="as people write it"),
        pytest.param("", secret("a", "true"), True, "", id="it answers: the word holds where it stands"),
        pytest.param("a", secret("a", "true"), True, "", id="it answers since"),
        pytest.param("", None, False, "", id="a Secret that said nothing is removed"),
        pytest.param("a", None, False, "a", id="the Secret that said so is removed"),
        pytest.param("a", None, True, "", id="it was connected a moment ago"),
        pytest.param("a", secret("a", None), False, "", id="the annotation was taken away"),
        pytest.param("a", secret("a", "false"), False, "", id="the same Secret takes it back"),
        pytest.param("a", secret("b", None), False, "a", id="another Secret says neither"),
        pytest.param("a", secret("b", None), True, "", id="another Secret leads to it, and it answers"),
        pytest.param("a", secret("b", "false"), False, "", id="another Secret takes it back"),
        pytest.param("a", secret("b", "true"), False, "b", id="another Secret says so, too"),
        pytest.param("a", secret("b", "yes"), False, "a", id="what is not understood is neither"),
        pytest.param("", secret("b", "yes"), False, "", id="nor does it declare anything"),
    ],
)
def test_it_is_remembered(known: str, said: Object | None, is_connected: bool, remembered: str) -> None:
    """By the object's uid: a manager that was away can tell an annotation that was taken away from a new object."""
    assert gone_by(known, said, is_connected=is_connected) == remembered


@pytest.mark.parametrize(
    ("entry", "said", "is_dead"),
    [
        (Entry(), None, False),
        (Entry(state="Lost", gone_by="a"), None, True),
        (Entry(state="Connected"), secret("a", "true"), True),
        (Entry(state="Lost", gone_by="a"), secret("b", "false"), False),
        (Entry(state="Lost"), secret("a", "true"), True),
    ],
)
def test_commands_see_it_in_what_is_written(entry: Entry, said: Object | None, is_dead: bool) -> None:
    """Before the manager has written it, too."""
    assert is_declared_dead(msgspec.json.decode(encode(entry), type=Entry), said) is is_dead


def test_a_worker_that_is_forgotten_is_not_dead_for_ever() -> None:
    """Its name may be used again; where its mirrors live stays known."""
    inventory = WorkerInventory({"east": Entry(uid="u", state="Lost", gone_by="a", namespace_prefix="p-")})
    inventory.forget("east", at="")
    assert inventory.entry("east") == Entry()
    assert [entry.gone_by for entry in inventory.entries.values()] == [""]
    assert inventory.prefix_on("east", "u") == "p-"
