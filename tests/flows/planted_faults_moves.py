"""The faults of moves from lost workers (D14): of what holds them back, and of what becomes of copies left behind."""

from __future__ import annotations

from planted_fault import PlantedFault

MOVE_FAULTS = (
    PlantedFault(
        "moves go on while most workers are lost",
        "controllers/move_turns.py",
        "            if _are_most(lost, self._workers.living):\n                return MOST_ARE_LOST\n",
        "            if False:\n                return MOST_ARE_LOST\n",
        "guards",
    ),
    PlantedFault(
        "a Job is moved more often than the limit allows",
        "decide/moving.py",
        "    if source.stored.limited_moves >= policy.move_limit:\n        return False\n",
        "    if False:\n        return False\n",
        "guards",
    ),
    PlantedFault(
        "all that are to move go at once",
        "controllers/move_turns.py",
        "            self._next_at += 1.0 / self._rate if self._rate else 0.0\n",
        "            self._next_at += 0.0\n",
        "guards",
    ),
    PlantedFault(
        "what a Namespace says goes before what its Job says",
        "model/losses.py",
        "    text = on_job if on_job is not None else on_namespace\n",
        "    text = on_namespace if on_namespace is not None else on_job\n",
        "guards",
    ),
    PlantedFault(
        "copies that lose are deleted though they are to be suspended",
        "controllers/returning.py",
        "        if self._suspends and summary.placed != worker.name and not must_go(kind, found):\n",
        "        if False:\n",
        "guards",
    ),
    PlantedFault(
        "copies that were left behind take no place",
        "controllers/sources.py",
        "        return self.load_of(worker) + self._totals.get((LEFT_BEHIND, worker), 0)\n",
        "        return self.load_of(worker)\n",
        "moves",
    ),
    PlantedFault(
        "a full worker takes one more",
        "placement/index.py",
        "        is_full = candidate.capacity is not None and load >= candidate.capacity\n",
        "        is_full = candidate.capacity is not None and load > candidate.capacity\n",
        "moves",
    ),
    PlantedFault(
        "a lease that somebody made longer counts",
        "decide/fencing.py",
        "    if mark == VOIDED or (queue and",
        "    if (queue and",
        "fence",
    ),
    PlantedFault(
        "a copy that still ran is not reported",
        "controllers/returning.py",
        "        if not text or memories.of(source.metadata.uid).breach_told == uid:\n",
        "        if True:\n",
        "fence",
    ),
)
