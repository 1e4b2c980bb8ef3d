"""The faults of several managers at once: of the protocol of slots (S1–S8)."""

from __future__ import annotations

from functools import partial

from planted_fault import PlantedFault

_fault = partial(PlantedFault, machine="slots")

SLOT_FAULTS = (
    _fault(
        "who assigns is replaced although its Lease is held",
        "runtime/leadership.py",
        "    return now >= seen.at + seen.duration_seconds\n",
        "    return True\n",
    ),
    _fault(
        "a Lease counts from when its renewal was answered",
        "runtime/leadership.py",
        "        self._held_since = since = min(asked_at, self._guarded_at)\n",
        "        self._held_since = since = self._clock.boottime()\n",
    ),
    _fault(
        "a slot is worked on for longer than its Lease lasts",
        "sharding/coordinator.py",
        "            self.renew_deadline_seconds,\n            self.retry_period_seconds,\n",
        "            5 * self.renew_deadline_seconds,\n            self.retry_period_seconds,\n",
    ),
    _fault(
        "the work goes on when its Lease is lost",
        "runtime/leadership.py",
        "            lost = True\n            working.cancel()\n",
        "            lost = True\n",
    ),
    _fault(
        "a record of another term is not touched",
        "decide/terms.py",
        "    if not seen.term or term_of(status) == seen.term:\n",
        "    if True:\n",
    ),
    _fault(
        "each time of holding a slot is the same term",
        "sharding/coordinator.py",
        "lambda: term_id(*leadership.term)",
        "lambda: term_id(leadership.term[0], 0)",
    ),
    _fault(
        "a refusal is believed whoever has sent the first create",
        "controllers/preparing.py",
        "            is_first = term_of(stored.status) == own and",
        "            is_first = True or term_of(stored.status) == own and",
    ),
    _fault(
        "no slot is given back",
        "sharding/claims.py",
        "    given = _given_back(board) if not board.free_for else ()\n",
        "    given = ()\n",
    ),
    _fault(
        "a slot whose holder has died stays its",
        "sharding/board.py",
        "            elif self._watching_since is not None:\n                since",
        "            elif self._watching_since is not None and seen is None:\n                since",
    ),
    _fault(
        "a slot that was lost is never taken again",
        "sharding/coordinator.py",
        "                del self._held[slot.index]\n",
        "                pass\n",
    ),
    _fault(
        "members that are gone count",
        "sharding/board.py",
        "            if is_member_lease(name) and seen.is_live(now):\n",
        "            if is_member_lease(name):\n",
    ),
    _fault(
        "a holder is connected to all workers",
        "sharding/share.py",
        "        return self.slot is None or slot_of_worker(worker, self.slot.of) == self.slot\n",
        "        return True\n",
    ),
    PlantedFault(
        "one is stopped before there is another place for it",
        "decide/retrying.py",
        "        case Step.FOUND:\n            return None\n        case Step.PLACE:\n",
        "        case Step.FOUND | Step.PLACE:\n            return None\n        case Step.MOVE:\n",
        "retrying-slots",
    ),
)
