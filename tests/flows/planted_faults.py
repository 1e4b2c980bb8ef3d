"""Would the random flows find it? Plants one fault after the other into a copy of ``mirror/`` and lets them look.

``python tests/flows/planted_faults.py [--only NAME] [--seeds N]`` prints for each how it was found, and ends with exit
code 1 if one was not. By default each is looked for by its history of ``planted_histories``, a few seconds each, which
ends well without it; with ``--seeds`` by random histories, up to so many seeds of 2,400 steps. A fault is a change of
one place of the text; ``test_planted_faults`` keeps each applicable.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from planted_fault import PlantedFault
from planted_faults_moves import MOVE_FAULTS
from planted_faults_slots import SLOT_FAULTS

ROOT = Path(__file__).parents[2]
FIRST_SEED = 500_000


FAULTS = (
    PlantedFault(
        "one label is enough",
        "decide/identity.py",
        "labels.get(names.ORIGIN) == origin and bool(labels.get(names.SOURCE_UID))",
        "labels.get(names.ORIGIN) == origin",
    ),
    PlantedFault(
        "a source may be a mirror",
        "workers/mirrors.py",
        "        if not isinstance(found, Partial) and self._hooks.is_source(found):\n",
        "        if False:\n",
    ),
    PlantedFault(
        "the annotation says whose it is",
        "controllers/writing_mirrors.py",
        "        recorded = self._t.state.memories.of(seen.source.uid).mirror_uid or",
        '        recorded = seen.source.found.annotations.get("jobmirror.io/mirror-uid") or',
    ),
    PlantedFault(
        "labels decide about the recorded mirror",
        "decide/identity.py",
        "if recorded_uid and uid == recorded_uid:",
        "if recorded_uid and uid == recorded_uid and is_of_source:",
    ),
    PlantedFault(
        "a watch proves a loss",
        "decide/rules.py",
        "        if memory.look is None or memory.looked_for != expected:\n",
        "        if not source.has_started and (memory.look is None or memory.looked_for != expected):\n",
    ),
    PlantedFault(
        "the template of the worker is put back",
        "kinds/following.py",
        "    return of_template and difference.cause is not Cause.CHANGED\n",
        "    return False\n",
    ),
    PlantedFault(
        "a note that is missing proves a change",
        "kinds/carried.py",
        'return "" if part.since <= self.version else None',
        'return ""',
    ),
    PlantedFault(
        "the prefix is what the Secret says",
        "workers/inventory.py",
        "return known.namespace_prefix if known.uid else None",
        "return None",
    ),
    PlantedFault(
        "an end that was seen is forgotten",
        "controllers/routes.py",
        "uid, was = source.metadata.uid, self._memories.of(source.metadata.uid).ended\n        if was is mirror:",
        "uid, was = source.metadata.uid, self._memories.of(source.metadata.uid).ended\n        if True:",
    ),
    PlantedFault(
        "mirrors of a renamed worker are deleted",
        "decide/mirror_verdict.py",
        "is_here = seen.is_recorded or is_over or seen.placed in (None, seen.worker)\n"
        "        return MirrorVerdict.KEEP if is_here else MirrorVerdict.CHECK_LIVE",
        "is_here = not is_over and seen.placed in (None, seen.worker)\n"
        "        return MirrorVerdict.KEEP if is_here else MirrorVerdict.DELETE",
    ),
    PlantedFault(
        "a worker may be another cluster",
        "workers/inventory.py",
        "        if known and known != uid:\n",
        "        return\n        if known and known != uid:\n",
    ),
    PlantedFault(
        "a Job is moved under Wait",
        "decide/moving.py",
        "        case _:\n            return False\n",
        "        case _:\n            return True\n",
        "moves",
    ),
    PlantedFault(
        "a Job is moved before its time",
        "decide/moving.py",
        "    if worker.lost_for_seconds < policy.lost_after_seconds or worker.lost_for_seconds <= 0:\n",
        "    if worker.lost_for_seconds <= 0:\n",
        "moves",
    ),
    PlantedFault(
        "who has just taken over moves Jobs",
        "controllers/move_turns.py",
        "        if self._share.follows and self.settles_in_seconds > 0:\n            return JUST_TOOK_OVER\n",
        "",
        "moves",
    ),
    PlantedFault(
        "a suspended Job is moved",
        "decide/moving.py",
        "worker.is_reachable or source.is_suspended or source.is_finished",
        "worker.is_reachable or source.is_finished",
        "moves",
    ),
    PlantedFault(
        "what is left behind is not said",
        "decide/moving.py",
        "    left, is_drained = request.left_on(east, seen.recorded_uid), request.why is Why.DRAINED\n",
        "    left, is_drained = None, request.why is Why.DRAINED\n",
        "moves",
    ),
    PlantedFault(
        "what was left behind stays",
        "decide/mirror_verdict.py",
        "            return MirrorVerdict.LEFT_BEHIND\n",
        "            return MirrorVerdict.KEEP\n",
        "moves",
    ),
    PlantedFault(
        "a complete copy is deleted",
        "decide/moving.py",
        "progress.end != COMPLETE",
        "progress.end",
        "moves",
    ),
    PlantedFault(
        "a fence is renewed late",
        "decide/fencing.py",
        "    if left is not None and left < LEAST_LEFT_SECONDS:\n        return None, None  # it ends",
        "    if left is not None and left < -LEAST_LEFT_SECONDS:\n        return None, None  # it ends",
        "fence",
    ),
    PlantedFault(
        "a lease is over before it has ended",
        "decide/moving.py",
        "fence is not None and not fence.why_not and fence.safe_in_seconds <= 0",
        "fence is not None and not fence.why_not and fence.ends_in_seconds <= 200",
        "fence",
    ),
    PlantedFault(
        "a lease is sent before its end is stored",
        "controllers/leases.py",
        "        if renewal.is_ours:\n            await self.cover(worker, renewal.lasts_seconds + ROUNDING_SECONDS)\n",
        "",
        "fence",
    ),
    PlantedFault(
        "an expired lease is a verdict",
        "decide/expired_leases.py",
        "    if (found := _expired(seen)) is None:\n        return None\n    ended, lease = found\n",
        "    if (found := _expired(seen)) is None or True:\n        return None\n    ended, lease = found\n",
        "fence",
    ),
    PlantedFault(
        "what is stored of leases is not read after a restart",
        "decide/fencing.py",
        "        ends_in = max(recorded, policy.fence_ttl_seconds - worker.lost_for_seconds)\n    else:",
        "        ends_in = -1000.0\n    else:",
        "fence",
    ),
    PlantedFault(
        "a lease is above the deadline of its user",
        "decide/fencing.py",
        "    if user is not None:\n        value = min(value, user)\n",
        "",
        "fence",
    ),
    PlantedFault(
        "a vanished mirror is made again while its pods run",
        "controllers/pods_left.py",
        'ENDED = ("Succeeded", "Failed")',
        'ENDED = ("Succeeded", "Failed", "Running")',
        "recreate",
    ),
    PlantedFault(
        "a started Job that may not start over does",
        "decide/recreating.py",
        "    return wanted and source.kind.can_move",
        "    return source.kind.can_move",
        "recreate",
    ),
    PlantedFault(
        "a mirror that ran unstored had never started",
        "controllers/routes.py",
        "ran=mirror.metadata.uid",
        'ran=""',
        "recreate",
    ),
    PlantedFault(
        "what a drain has deleted had run on",
        "controllers/writing_mirrors.py",
        "            if may_have_run and not was_let_go(seen):\n",
        "            if may_have_run:\n",
        "recreate",
    ),
    PlantedFault(
        "what the cache has of a drained mirror is stored",
        "decide/rules.py",
        "    stay_after_drain,\n    make_room_for_mirror,\n",
        "    make_room_for_mirror,\n",
        "recreate",
    ),
    PlantedFault(
        "what ran before a move counts as started",
        "controllers/observing.py",
        "has_started=stored.has_started and not stored.waits_after_move,",
        "has_started=stored.has_started,",
        "moves",
    ),
    PlantedFault(
        "a mirror is resumed before it is seeded",
        "decide/seeding.py",
        "    status = source.stored.seeded_status(mirror)\n",
        "    status = None\n",
        "moves",
    ),
    PlantedFault(
        "progress counts twice",
        "kinds/batch_job/seeding.py",
        'joined: Status = {"failed": max(seed["failed"], theirs.failed)}',
        'joined: Status = {"failed": seed["failed"] + theirs.failed + 1}',
        "moves",
    ),
    PlantedFault(
        "what is stored is joined in part",
        "kinds/batch_job/seeding.py",
        'completed = indexes.union(indexes.read(seed["completedIndexes"], completions), theirs.completed_indexes)',
        'completed = indexes.union(indexes.read(seed["completedIndexes"], 1), theirs.completed_indexes)',
        "moves",
    ),
    PlantedFault(
        "a drain deletes before the last status is stored",
        "kinds/batch_job/status_moved.py",
        "stored.status if status is None else status, times.of(now)\n    listed = conditions.of(base)\n    if",
        "stored.status, times.of(now)\n    listed = conditions.of(base)\n    if",
        "moves",
    ),
    PlantedFault(
        "a drain records another worker before the mirror is gone",
        "decide/draining.py",
        "    version = mirror.metadata.resource_version\n",
        "    return _go(replace(seen, memory=replace(seen.memory, first_create=True)))\n    version = ''\n",
        "moves",
    ),
    PlantedFault(
        "a Lease that is held is taken",
        "runtime/leadership.py",
        "    return now >= seen.at + seen.duration_seconds\n",
        "    return True\n",
    ),
    PlantedFault(
        "who takes over believes what it has heard",
        "workers/worker.py",
        "        self.watches.list_anew()\n        self._report_transition()\n",
        "        self._report_transition()\n",
    ),
    PlantedFault(
        "who takes over judges before it has heard anything",
        "workers/registry.py",
        "        self.is_leading = True\n        self._settling_since = self.clock.monotonic()\n",
        "        self.is_leading = True\n",
    ),
    PlantedFault(
        "a queue's reset is another controller's write",
        "controllers/routes.py",
        "        if kind.is_suspended(new) and is_reset(old, new):\n",
        "        if False:\n",
        "queues",
    ),
    PlantedFault(
        "a queue's notes go along",
        "kinds/queueing.py",
        "        if not POD_NOTES.isdisjoint(values):\n",
        "        if False:\n",
        "queues",
    ),
    PlantedFault(
        "a partial admission is put back",
        "kinds/following.py",
        "(followed.releases(d) or is_admitted)]\n",
        "followed.releases(d)]\n",
        "queues",
    ),
    PlantedFault(
        "a record that users change is believed",
        "decide/trusting.py",
        "    if trust is None or source.placed == (trust.known or None):\n",
        "    if True:\n",
        "annotated",
    ),
    PlantedFault(
        "a kind that is run here is placed",
        "controllers/stopped_kinds.py",
        "return Obstruction(Reason.KIND_RUNS_HERE, what_to_do(kind)) if self._is_run_here(kind) else None",
        "return None",
        "declared",
    ),
    PlantedFault(
        "a mirror of one that is handed over stays",
        "controllers/handed_over.py",
        "        return is_known\n",
        "        return False\n",
        "declared",
    ),
    PlantedFault(
        "a time to live goes along",
        "kinds/declared/form.py",
        ", *_paths(tuple(filter(None, (entry.time_to_live,)))))",
        ")",
        "declared",
    ),
    PlantedFault(
        "a change that cannot follow is told of",
        "kinds/declared/body.py",
        "if not (contains(found, fixed) if noted is None else noted == digest(fixed)):",
        "if False:",
        "declared",
    ),
    PlantedFault(
        "a time to live is over at once",
        "decide/rules.py",
        "        seconds - source.kind.seconds_since_end(source.stored.status, seen.now),\n",
        "        0.0,\n",
        "declared",
    ),
    PlantedFault(
        "a deletion is believed while the kind goes",
        "controllers/vanishing.py",
        "                if not is_served:\n",
        "                if False:\n",
        "declared",
    ),
    PlantedFault(
        "another manager's record is taken for one's own",
        "decide/other_managers.py",
        "    if not other:\n",
        "    if True:\n",
        "two-managers",
    ),
    PlantedFault(
        "who has placed a Job is not written",
        "decide/writing.py",
        "        changes.append((names.MANAGER, manager))\n",
        "        pass\n",
        "two-managers",
    ),
    PlantedFault(
        "mirrors of all kinds are in one store",
        "workers/watching.py",
        "    def of(self, kind: Kind) -> MirrorStore:\n        return self._stores[kind.name]\n",
        "    def of(self, kind: Kind) -> MirrorStore:\n        return next(iter(self._stores.values()))\n",
        "kinds",
    ),
    PlantedFault(
        "a pod that runs is no pod that ran",
        "workers/pod_ledger.py",
        "        if why := _started(status):\n",
        "        if why := '':\n",
        "retrying",
    ),
    PlantedFault(
        "a mirror that was restarted was only stopped",
        "kinds/batch_job/retry.py",
        "spec.suspend is True and mirror.metadata.generation == 2",
        "spec.suspend is True",
        "retrying",
    ),
    PlantedFault(
        "a mirror of which nothing ran is deleted as it is now",
        "decide/retrying.py",
        "DeleteMirror(_name(seen), record.uid, mirror.metadata.resource_version, because)",
        'DeleteMirror(_name(seen), record.uid, "", because)',
        "retrying",
    ),
    PlantedFault(
        "the start of a mirror of which nothing ran counts",
        "kinds/batch_job/status_stored.py",
        "    return retries_of(listed).start == start and conditions.is_true(listed, SUSPENDED)\n",
        "    return False\n",
        "retrying",
    ),
    *MOVE_FAULTS,
    *SLOT_FAULTS,
)


def main() -> int:
    """Parse the arguments and try; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[fault.name for fault in FAULTS])
    parser.add_argument("--seeds", type=int, default=0, help="so many random ones at most for each")
    options = parser.parse_args()
    missed = 0
    for fault in FAULTS:
        if options.only in (None, fault.name):
            began = time.monotonic()
            found = look_for(fault, options.seeds)
            missed += not found
            print(f"{fault.name}: {found or 'NOT FOUND'} ({time.monotonic() - began:.0f} s)", flush=True)
    return 1 if missed else 0


def look_for(fault: PlantedFault, seeds: int) -> str:
    """Plant it, and play; by which seed and rule it was found, or nothing."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        shutil.copytree(ROOT / "mirror", root / "mirror")  # what is compiled goes along: compiling takes seconds
        fault.plant(root)
        for number in range(FIRST_SEED, FIRST_SEED + seeds):
            program = f"import marathon; told = marathon.play({number}, machines=[{fault.machine!r}])[1]; print(told)"
            told = _run(root, program)
            if told:
                return f"seed {number}: {told}"
        return "" if seeds else _run(root, f"import planted_histories; planted_histories.told({fault.name!r})")


def _run(root: Path, program: str) -> str:
    """In a process of its own, which imports the copy; the rule that was broken."""
    program = f"import mirror\nassert mirror.__file__.startswith({str(root)!r}), mirror.__file__\n{program}"
    found = os.pathsep.join((str(root), str(Path(__file__).parent), str(ROOT / "tests")))
    environment = {**os.environ, "PYTHONPATH": found}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, cwd=root
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    lines = [line for line in done.stdout.splitlines() if "Error" in line]
    return lines[0].strip() if lines else ""


if __name__ == "__main__":
    sys.exit(main())
