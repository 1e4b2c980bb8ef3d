"""What the built-in kinds have in common: decoding by their struct, metadata rules, generation.

A kind names its struct and replaces the hooks in which it differs. The order of causes is upstream's: rules of the
metadata, then of the kind; the generic rules of updates come before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from mirror.batch.syntax import subdomain_problems
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.apimachinery.objects import canonical, same
from mirror.embedded.apiserver.apimachinery.strategy import Context, Json, Strategy, Update
from mirror.embedded.apiserver.registry import object_meta
from mirror.embedded.apiserver.validation import metadata

CORE_REFUSAL = "field label not supported: {label}"
"""How kinds of core say that they do not have a field selector."""


class Builtin(Strategy):
    """A kind with a struct in ``schemas``."""

    is_namespaced: ClassVar[bool] = True
    has_generation: ClassVar[bool] = False
    """Whether ``metadata.generation`` counts changes of ``spec``."""
    name_problems: Callable[[str], Iterable[str]] = staticmethod(subdomain_problems)
    """What is wrong with a name, in the server's sentences."""

    def decode(self, body: Json) -> Json:
        found: Json = canonical(body, self.struct)
        found.setdefault("metadata", {})
        return found

    def prepare_create(self, body: Json, context: Context) -> Json:
        if "status" in self.subresources:
            body["status"] = {}
        if self.has_generation:
            body["metadata"]["generation"] = 1
        return body

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        new = super().prepare_update(new, old, context)
        self.keep_generation(new, old)
        if self.has_generation and not same(new.get("spec"), old.get("spec")):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        return new

    def keep_generation(self, new: Json, old: Json) -> None:
        """What a client says of the generation counts for nothing."""
        if "generation" in old["metadata"]:
            new["metadata"]["generation"] = old["metadata"]["generation"]
        else:
            new["metadata"].pop("generation", None)

    def check_create(self, body: Json, context: Context) -> Sequence[Violation]:
        return [*self.check_meta(body), *self.check(body, context)]

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        """Metadata as it may change, then all rules of a new object, as most kinds of core have it."""
        return [
            *metadata.check_meta_update(new, old),
            *self.check_change(new, old, context),
            *self.check_meta(new),
            *self.check(new, context),
        ]

    def served(self, stored: Json) -> Json:
        found: Json = object_meta.stored(stored, self.struct)
        return found

    def check_meta(self, body: Json) -> Iterator[Violation]:
        """The rules of metadata with which the kind's own begin."""
        return metadata.check_meta(body["metadata"], name_problems=self.name_problems, is_namespaced=self.is_namespaced)

    def check(self, body: Json, context: Context) -> Iterable[Violation]:
        """Rules of the kind itself, for new and changed objects alike."""
        return ()

    def check_change(self, new: Json, old: Json, context: Context) -> Iterable[Violation]:
        """Rules about what may change."""
        return ()


def status_update(
    kind: Builtin,
    *,
    check: Callable[[Json, Json, Context], Iterable[Violation]] | None = None,
    keeps: Sequence[str] = ("spec",),
    takes: Callable[[Json, Json, Context], Json] | None = None,
    has_meta_rules: bool = True,
) -> Update:
    """A ``/status``: all but these fields is taken from the request; ``takes`` may make more of it.

    ``has_meta_rules``: the rules of metadata come once more than for every update.
    """

    def prepare(new: Json, old: Json, context: Context) -> Json:
        keep(new, old, keeps)
        kind.keep_generation(new, old)
        return takes(new, old, context) if takes is not None else new

    def checked(new: Json, old: Json, context: Context) -> Sequence[Violation]:
        found = list(metadata.check_meta_update(new, old)) if has_meta_rules else []
        return [*found, *(check(new, old, context) if check is not None else ())]

    return Update(prepare, checked, resets=tuple((name,) for name in keeps))


def keep(new: Json, old: Json, names: Iterable[str]) -> None:
    """In place: these fields are what they were."""
    for name in names:
        if name in old:
            new[name] = old[name]
        else:
            new.pop(name, None)
