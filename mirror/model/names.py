"""Every name that appears on the wire: labels, annotations, conditions, events.

No other module spells one of these out.
"""

PREFIX = "jobmirror.io/"

# On sources.
DEFAULT_MANAGED_BY = PREFIX + "controller"
BUILT_IN_MANAGED_BY = "kubernetes.io/job-controller"
MULTIKUEUE_MANAGED_BY = "kueue.x-k8s.io/multikueue"
WORKER_SELECTOR = PREFIX + "worker-selector"
WORKER_ORDER = PREFIX + "worker-order"
SPREAD_BY = PREFIX + "spread-by"
PRIORITY = PREFIX + "priority"
ON_WORKER_LOSS = PREFIX + "on-worker-loss"
ON_MIRROR_LOSS = PREFIX + "on-mirror-loss"
ASSIGNED_WORKER = PREFIX + "assigned-worker"
# The namespace of the manager that has recorded the worker, so that another one of the same cluster leaves it alone.
MANAGER = PREFIX + "manager"
CARRY = PREFIX + "carry"
HELD = PREFIX + "held"
WAITING_BECAUSE = PREFIX + "waiting-because"
MIRROR_UID = PREFIX + "mirror-uid"
# Our conditions, as JSON, on a source whose status has none (D25); users can write it, so it is not simply believed.
CONDITIONS = PREFIX + "conditions"
RULE_NAMES = PREFIX + "pod-failure-policy-rule-names"

# Condition on sources: True, message = the worker (D5); False with a reason while it waits for one (D22).
PLACED = PREFIX + "Placed"
# Condition on sources: True, message = the mirror's uid. Unlike the annotation, the ``edit`` role cannot write it (D1).
MIRRORED = PREFIX + "Mirrored"
# Condition on sources: False or Unknown while a placed one makes no progress; absent otherwise (D22).
PROGRESSING = PREFIX + "Progressing"
# Condition on sources: True once it was moved from a lost worker; its message is ``model.moves`` (D14).
MOVED = PREFIX + "Moved"
# Condition on sources: True once it has left a drained worker; its message is how often, by ``model.drains`` (D14).
DRAINED = PREFIX + "Drained"
# Condition on sources: a mirror of which no pod ever ran is tried on another worker; ``model.retries`` (D31).
RETRYING = PREFIX + "Retrying"

# On mirrors.
ORIGIN = PREFIX + "origin"
SOURCE_UID = PREFIX + "source-uid"
# Only with the setting ``origin``, which may by mistake be that of two management clusters.
MANAGEMENT_UID = PREFIX + "management-uid"
CARRIED = PREFIX + "carried"
# Digest of what of its spec never follows, for kinds that are data; written when it is created.
CARRIED_SPEC = PREFIX + "carried-spec"
TOUCHED_AT = PREFIX + "touched-at"
# On mirrors that were made suspended so that progress goes along (D14): pending, done or refused.
SEED = PREFIX + "seed"
SEED_PENDING, SEED_DONE, SEED_REFUSED = "pending", "done", "refused"
# It was suspended so that its source can be tried elsewhere; the value is known to whoever did it, and to nobody else.
STOPPED_FOR = PREFIX + "stopped-for"
# Its activeDeadlineSeconds is a lease of ours, not its user's deadline (D14); the value says nothing.
FENCE = PREFIX + "fence"

# Annotations on copies of what mirrors refer to (D27).
COPY_OF = PREFIX + "copy-of"
# Followed by the uid of a source that has no mirror yet; its value is the source's kind and name.
COPIED_FOR = PREFIX + "copied-for-"

# On Secrets that register workers.
WORKER = PREFIX + "worker"
CORDONED = PREFIX + "cordoned"
CAPACITY = PREFIX + "capacity"
WEIGHT = PREFIX + "weight"
DRAIN = PREFIX + "drain"
# A person's word that nothing runs there any more (D14).
GONE = PREFIX + "gone"
NAMESPACES = PREFIX + "namespaces"
NAMESPACE_PREFIX = PREFIX + "namespace-prefix"
KUBECONFIG_KEY = "kubeconfig"

# On a Secret of the manager's namespace: the ClusterProfiles, by name, that may have its credentials (D18).
FOR_CLUSTER_PROFILES = PREFIX + "for-cluster-profiles"

# On what `mirror worker add` makes on a worker; its value is the namespace of the account.
WORKER_RIGHTS = PREFIX + "worker-rights"

# On Leases of replicas that share the work: the number of slots, and who says so; on members' whether it could work.
SLOTS = PREFIX + "slots"
READY = PREFIX + "ready"
ADDRESS = PREFIX + "address"

# On the ConfigMap of workers, beside the origin: the kinds that the manager mirrors, for operators' commands.
KINDS = PREFIX + "kinds"

# Objects in the manager's namespace.
WORKERS_CONFIGMAP = "jobmirror-workers"
ACCESS_CONFIGMAP = "jobmirror-access"
HTTPS_SECRET = "jobmirror-https"
SERVICE = "jobmirror"
WEBHOOK_SERVICE = "jobmirror-webhook"
WEBHOOKS = "jobmirror"
"""Both webhook configurations, which are in no namespace."""
LEASE = "jobmirror-manager"
SLOT_LEASE = "jobmirror-slot"
"""Followed by ``-INDEX-of-NUMBER``: who works on a share of the workers, where there are several."""
MEMBER_LEASE = "jobmirror-member"
"""Followed by ``-`` and a text of its own: one replica, where there are several that work."""
JOB_CONTROLLER_LEASE = "jobmirror-job-controller"

# Kueue's, on a Job: its LocalQueue; on the pod template of one that it has admitted.
QUEUE_NAME = "kueue.x-k8s.io/queue-name"
POD_SET = "kueue.x-k8s.io/podset"

FIELD_MANAGER = "jobmirror"
