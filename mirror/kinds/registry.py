"""All kinds that can be mirrored: the table. A new kind is one line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mirror.kinds.base import Kind
from mirror.kinds.batch_job.kind import BatchJob

JOB: Kind = BatchJob()


@dataclass(frozen=True)
class Kinds:
    """The kinds that one manager mirrors, by the names that keys have."""

    by_name: Mapping[str, Kind]

    @staticmethod
    def of(*kinds: Kind) -> Kinds:
        """These kinds.

        Raises:
            ValueError: two have one name.
        """
        by_name = {kind.name: kind for kind in kinds}
        if len(by_name) != len(kinds):
            raise ValueError("two kinds have one name")
        return Kinds(MappingProxyType(by_name))

    def __getitem__(self, name: str) -> Kind:
        return self.by_name[name]

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.by_name.values())


BUILT_IN = Kinds.of(JOB)
