"""Which workers one instance of mirroring has: all, or those of a slot (S1). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from mirror.model import names
from mirror.sharding.slots import Slot, slot_of_worker


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the workers; without a slot it is everything there is."""

    slot: Slot | None = None

    def has(self, worker: str) -> bool:
        """Whether a worker of this name is in it."""
        return self.slot is None or slot_of_worker(worker, self.slot.of) == self.slot

    @property
    def record(self) -> str:
        """The name of the ConfigMap in which its workers are written down."""
        return names.WORKERS_CONFIGMAP if self.slot is None else f"{names.WORKERS_CONFIGMAP}{self.slot.suffix}"


EVERYTHING = Share()
