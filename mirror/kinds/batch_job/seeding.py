"""Progress that goes along when a Job moves: what a new mirror's status gets before it may run (D14, decision 0022).

Pure. Joining is idempotent: a union of indexes, a maximum of counters; what is joined twice counts once.
"""

from __future__ import annotations

import msgspec

from mirror.batch import indexes, views
from mirror.batch.conditions import SUSPENDED, TRUE
from mirror.batch.status_rules import check_change
from mirror.kinds.base import Json
from mirror.kinds.batch_job.body import SUSPEND
from mirror.kinds.batch_job.status_clean import clean
from mirror.kinds.batch_job.status_stored import StoredJob
from mirror.kinds.following import noted_as
from mirror.kinds.stored_source import Status
from mirror.kube.objects import Object
from mirror.model import names


def has_seed(stored: StoredJob) -> bool:
    """Whether something was counted that a new mirror's status can be given, by the API's rules."""
    seed = _seed(stored)
    if not any(seed.values()):
        return False
    return not check_change(msgspec.structs.replace(stored.wanted, suspend=True), {}, seed)


def seeded_status(stored: StoredJob, mirror: Object) -> Status | None:
    """The status of a mirror that is held, with what is stored joined; None: it has all of that, or takes none."""
    found, seed = mirror.status_dict(), _seed(stored)
    wanted = stored.wanted
    theirs = clean(found, completions=wanted.completions if wanted.is_indexed else None)
    joined: Status = {"failed": max(seed["failed"], theirs.failed)}
    if "completedIndexes" in seed:
        completions = wanted.completions or 0
        completed = indexes.union(indexes.read(seed["completedIndexes"], completions), theirs.completed_indexes)
        joined |= {"completedIndexes": indexes.write(completed), "succeeded": indexes.count(completed)}
        if "failedIndexes" in seed:
            failed = indexes.union(indexes.read(seed["failedIndexes"], completions), theirs.failed_indexes or ())
            joined["failedIndexes"] = indexes.write(indexes.minus(failed, completed))
    else:
        joined["succeeded"] = max(seed["succeeded"], theirs.succeeded)
    if all((value or None) == (found.get(name) or None) for name, value in joined.items()):
        return None
    status = {**found, **joined}
    return None if check_change(msgspec.structs.replace(wanted, suspend=True), found, status) else status


def held_body(body: dict[str, Json]) -> dict[str, Json]:
    """A new mirror that is held until its status is seeded; noted as it is sent, so that resuming is a change (D9)."""
    metadata = body["metadata"]
    carried = noted_as(metadata["annotations"][names.CARRIED], SUSPEND.name, value=True)
    annotations = metadata["annotations"] | {names.CARRIED: carried, names.SEED: names.SEED_PENDING}
    return {**body, "metadata": metadata | {"annotations": annotations}, "spec": body["spec"] | {"suspend": True}}


def is_held(mirror: Object) -> bool:
    """Whether a mirror waits for its seed: made for that, suspended, and nothing of it has run (D14)."""
    if mirror.annotations.get(names.SEED) != names.SEED_PENDING or mirror.spec_dict().get("suspend") is not True:
        return False
    status = mirror.status_dict()
    if any(status.get(name) for name in ("startTime", "active", "terminating")):
        return False
    listed = status.get("conditions") or ()
    others = [one for one in listed if isinstance(one, dict) and one.get("status") == TRUE]
    return all(one.get("type") == SUSPENDED for one in others)


def _seed(stored: StoredJob) -> Status:
    """What was counted, clipped to the completions that the source has now."""
    status, wanted = stored.status, stored.wanted
    seed: Status = {"failed": views.number(status.get("failed"))}
    if not wanted.is_indexed or wanted.completions is None:
        # Without completions one success ends a Job, whatever still ran: that has to run again.
        succeeded = views.number(status.get("succeeded"))
        return seed | {"succeeded": min(succeeded, wanted.completions) if wanted.completions is not None else 0}
    completed = indexes.read(views.text(status.get("completedIndexes")), wanted.completions)
    seed |= {"completedIndexes": indexes.write(completed), "succeeded": indexes.count(completed)}
    if wanted.has_backoff_limit_per_index:
        failed = indexes.read(views.text(status.get("failedIndexes")), wanted.completions)
        seed["failedIndexes"] = indexes.write(indexes.minus(failed, completed))
    return seed
