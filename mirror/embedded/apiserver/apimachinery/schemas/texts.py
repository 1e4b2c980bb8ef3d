"""What kinds and the larger structs are, of which the typed client says nothing; for ``kubectl explain``."""

from __future__ import annotations

from collections.abc import Mapping

TEXTS: Mapping[str, str] = {
    "Affinity": "Affinity says near what a pod is scheduled, and far from what.",
    "Binding": "Binding ties one object to another; for example, a pod is bound to a node by a scheduler.",
    "ClusterRole": (
        "ClusterRole is a cluster level, logical grouping of PolicyRules that can be referenced as a unit by "
        "a RoleBinding or ClusterRoleBinding."
    ),
    "ClusterRoleBinding": "ClusterRoleBinding references a ClusterRole, but not contain it.",
    "ConfigMap": "ConfigMap holds configuration data for pods to consume.",
    "CronJob": "CronJob represents the configuration of a single cron job.",
    "CronJobSpec": "CronJobSpec says when which Jobs are created.",
    "CronJobStatus": "CronJobStatus says which Jobs run, and when the last one was created.",
    "CustomResourceDefinition": (
        "CustomResourceDefinition represents a resource that should be exposed on the API server."
    ),
    "CustomResourceDefinitionSpec": "CustomResourceDefinitionSpec says how a kind is named and what it holds.",
    "CustomResourceDefinitionStatus": "CustomResourceDefinitionStatus says whether the resource is served.",
    "Event": "Event is a report of an event somewhere in the cluster.",
    "EventsV1Event": (
        "Event is a report of an event somewhere in the cluster. It generally denotes some state change in the system."
    ),
    "Eviction": "Eviction evicts a pod from its node subject to certain policies and safety constraints.",
    "Job": "Job represents the configuration of a single job.",
    "JobSpec": "JobSpec says how many pods have to succeed, and what they look like.",
    "JobStatus": "JobStatus says how far a Job has come. It is written by the Job's controller.",
    "JobTemplateSpec": "JobTemplateSpec is what a Job looks like that is created from it.",
    "LabelSelector": "LabelSelector selects objects by their labels; an empty one selects all, none at all nothing.",
    "Lease": "Lease defines a lease concept.",
    "LeaseSpec": "LeaseSpec says who holds the lease, and until when.",
    "ListMeta": "ListMeta is the metadata of a list: its version, and where it goes on.",
    "LocalSubjectAccessReview": (
        "LocalSubjectAccessReview checks whether or not a user or group can perform an action in a given namespace."
    ),
    "MutatingWebhookConfiguration": (
        "MutatingWebhookConfiguration describes the configuration of and admission webhook that accept or "
        "reject and may change the object."
    ),
    "Namespace": "Namespace provides a scope for Names. Use of multiple namespaces is optional.",
    "NamespaceSpec": "NamespaceSpec lists who has to agree before a namespace is gone.",
    "NamespaceStatus": "NamespaceStatus says whether a namespace is active or going.",
    "Node": "Node is a worker node in Kubernetes.",
    "NodeSpec": "NodeSpec says what may be scheduled onto a node.",
    "NodeStatus": "NodeStatus says what a node has, and how it is.",
    "ObjectMeta": "ObjectMeta is the metadata that every object has.",
    "ObjectReference": "ObjectReference names another object.",
    "Pod": (
        "Pod is a collection of containers that can run on a host. This resource is created by clients and "
        "scheduled onto hosts."
    ),
    "PodDNSConfig": "PodDNSConfig says how a pod resolves names.",
    "PodFailurePolicy": "PodFailurePolicy says what a failed pod means for its Job.",
    "PodSecurityContext": "PodSecurityContext says as whom a pod runs.",
    "PodSpec": "PodSpec says which containers a pod runs, and where.",
    "PodStatus": "PodStatus says how a pod is. It is written by its node.",
    "PodTemplateSpec": "PodTemplateSpec is what a pod looks like that is created from it.",
    "PriorityClass": "PriorityClass defines mapping from a priority class name to the priority integer value.",
    "Probe": "Probe says how to find out whether a container is well.",
    "ResourceRequirements": "ResourceRequirements says what a container needs, and how much it may use.",
    "Role": "Role is a namespaced, logical grouping of PolicyRules that can be referenced as a unit by a RoleBinding.",
    "RoleBinding": "RoleBinding references a role, but does not contain it.",
    "RoleRef": "RoleRef names the role that a binding gives.",
    "Scale": "Scale represents a scaling request for a resource.",
    "Secret": "Secret holds secret data of a certain type.",
    "SecurityContext": "SecurityContext says as whom a container runs, and what it may do.",
    "SelfSubjectAccessReview": "SelfSubjectAccessReview checks whether or the current user can perform an action.",
    "SelfSubjectReview": (
        "SelfSubjectReview contains the user information that the kube-apiserver has about the user making "
        "this request."
    ),
    "SelfSubjectRulesReview": (
        "SelfSubjectRulesReview enumerates the set of actions the current user can perform within a namespace."
    ),
    "ServiceAccount": "ServiceAccount is an identity, understood by users and perhaps by peripheral systems.",
    "SubjectAccessReview": "SubjectAccessReview checks whether or not a user or group can perform an action.",
    "SuccessPolicy": "SuccessPolicy says when a Job is done though not all of its pods have succeeded.",
    "TokenRequest": "TokenRequest requests a token for a given service account.",
    "TokenReview": "TokenReview attempts to authenticate a token to a known user.",
    "UncountedTerminatedPods": "UncountedTerminatedPods lists pods that have ended and are not in the counters yet.",
    "ValidatingWebhookConfiguration": (
        "ValidatingWebhookConfiguration describes the configuration of and admission webhook that accept or "
        "reject and object without changing it."
    ),
}
