"""Rules of metadata for kinds of all scopes and forms of names; what Jobs have, too, is in ``batch.meta_rules``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mirror.batch import meta_rules
from mirror.batch.syntax import subdomain_problems
from mirror.batch.violations import Violation, forbidden, invalid_texts, required
from mirror.embedded.apiserver.apimachinery.strategy import Json

_ANY_NAMESPACE = "any"


def check_meta(
    meta: Json,
    *,
    name_problems: Callable[[str], Iterable[str]] = subdomain_problems,
    is_namespaced: bool = True,
    is_core: bool = True,
) -> Iterator[Violation]:
    """Every rule of a new object's metadata, in the server's order.

    ``name_problems`` tells what is wrong with a name. Kinds of core, batch and their like (``is_core``) also have the
    rule that finalizers without a domain are Kubernetes' own.
    """
    prefix, name = meta.get("generateName", ""), meta.get("name", "")
    if prefix:
        yield from invalid_texts("metadata.generateName", prefix, name_problems(masked(prefix)))
    if name:
        yield from invalid_texts("metadata.name", name, name_problems(name))
    else:
        yield required("metadata.name", "name or generateName is required")
    yield from check_common(meta, is_namespaced=is_namespaced)
    if is_core:
        yield from meta_rules.check_finalizer_names(meta)


def check_common(meta: Json, *, is_namespaced: bool = True) -> Iterator[Violation]:
    """The rules of every write but those about the name."""
    if is_namespaced:
        yield from meta_rules.check_common(meta)
        return
    if meta.get("namespace"):
        yield forbidden("metadata.namespace", "not allowed on this type")
    # The other rules are the same; with any namespace, the rule that there is one says nothing.
    yield from meta_rules.check_common({**meta, "namespace": _ANY_NAMESPACE})


def check_meta_update(new: Json, old: Json, *, is_core: bool = True) -> Iterator[Violation]:
    """What an update may not change, of two whole objects."""
    yield from meta_rules.check_meta_update(new["metadata"], old["metadata"])
    if is_core:
        yield from meta_rules.check_finalizer_names(new["metadata"])


def masked(prefix: str) -> str:
    """A generateName as its rules see it: the dash at its end, and what is before it, is still to be followed."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
