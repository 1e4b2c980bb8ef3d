"""The types of the fields of every built-in kind: those of Jobs (``batch_schema``) and all others."""

from __future__ import annotations

from collections.abc import Mapping

from mirror.embedded.apiserver.apimachinery.batch_schema import STRUCTS as BATCH
from mirror.embedded.apiserver.apimachinery.batch_schema import read
from mirror.embedded.apiserver.apimachinery.canonical import Json, Structs
from mirror.embedded.apiserver.apimachinery.schemas import access, core, extensions, machinery, others

STRUCTS: Mapping[str, Mapping[str, str]] = {
    **BATCH,
    **{
        struct: fields
        for module in (core, others, access, machinery, extensions)
        for struct, fields in read(module.TABLE).items()
    },
}
"""Struct → field → type. Structs are called as in Go; ``EventsV1Event`` is that of events.k8s.io, and what definitions
of resources have in common with webhook configurations is called ``Apiextensions…`` there."""

_STRUCTS = Structs(STRUCTS)


def canonical(body: object, struct: str) -> Json:
    """The body of this struct as a server has decoded it (``canonical``); always a new object."""
    return _STRUCTS.read(body, struct)
