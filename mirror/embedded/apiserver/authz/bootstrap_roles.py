"""The cluster roles that every cluster has, as a table; ``bootstrap`` reads it.

They are those of kube-apiserver that matter to clients of this server: for people, for discovery, and for the
components that may run against it. Rules about kinds that are not served here are kept: roles are compared as wholes.
"""

CLUSTER_ROLES = """
cluster-admin
  * * *
  * urls *
admin = admin
edit = edit > admin
view = view > edit
system:aggregate-to-admin > admin
  create authorization.k8s.io localsubjectaccessreviews
  ALL rbac.authorization.k8s.io rolebindings,roles
system:aggregate-to-edit > edit
  READ - pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy
  impersonate - serviceaccounts
  WRITE - pods,pods/attach,pods/exec,pods/portforward,pods/proxy
  create - pods/eviction
  WRITE - configmaps,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets,
      serviceaccounts,services,services/proxy
  create - serviceaccounts/token
  WRITE -,events.k8s.io events
  WRITE apps daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,
      statefulsets,statefulsets/scale
  WRITE autoscaling horizontalpodautoscalers
  WRITE batch cronjobs,jobs
  WRITE extensions daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,networkpolicies,
      replicasets,replicasets/scale,replicationcontrollers/scale
  WRITE policy poddisruptionbudgets
  WRITE networking.k8s.io ingresses,networkpolicies
  ALL coordination.k8s.io leases
  WRITE resource.k8s.io resourceclaims,resourceclaimtemplates
system:aggregate-to-view > view
  READ - configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers,
      replicationcontrollers/scale,serviceaccounts,services,services/status
  READ - bindings,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,resourcequotas,
      resourcequotas/status
  READ - namespaces
  READ -,events.k8s.io events
  READ discovery.k8s.io endpointslices
  READ apps controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,
      replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status
  READ autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status
  READ batch cronjobs,cronjobs/status,jobs,jobs/status
  READ extensions daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,
      ingresses/status,networkpolicies,replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale
  READ policy poddisruptionbudgets,poddisruptionbudgets/status
  READ networking.k8s.io ingresses,ingresses/status,networkpolicies
  READ resource.k8s.io resourceclaims,resourceclaims/status,resourceclaimtemplates
system:auth-delegator
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
system:basic-user
  create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews
  create authentication.k8s.io selfsubjectreviews
system:discovery
  get urls /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/
system:public-info-viewer
  get urls /healthz,/livez,/readyz,/version,/version/
system:monitoring
  get urls /flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*,/statusz
  get - nodes/metrics
system:service-account-issuer-discovery
  get urls /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/
system:kube-controller-manager
  create,patch,update -,events.k8s.io events
  create coordination.k8s.io leases
  get,update coordination.k8s.io leases kube-controller-manager
  create - secrets,serviceaccounts
  delete - secrets
  get - configmaps,namespaces,secrets,serviceaccounts
  update - secrets,serviceaccounts
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
  list,watch * *
  create - serviceaccounts/token
system:kube-scheduler
  create,patch,update -,events.k8s.io events
  create coordination.k8s.io leases
  get,list,update,watch coordination.k8s.io leases kube-scheduler
  ALL coordination.k8s.io leasecandidates
  READ - nodes
  delete,READ - pods
  create - bindings,pods/binding
  patch,update - pods/status
  READ - replicationcontrollers,services
  READ apps,extensions replicasets
  READ apps statefulsets
  READ policy poddisruptionbudgets
  READ - persistentvolumeclaims,persistentvolumes
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
  READ storage.k8s.io csinodes
  READ storage.k8s.io volumeattachments
  READ - namespaces
  READ storage.k8s.io csidrivers
  READ storage.k8s.io csistoragecapacities
  READ resource.k8s.io deviceclasses
  get,list,patch,update,watch resource.k8s.io resourceclaims
  get,list,patch,update,watch resource.k8s.io resourceclaims/status
  update - pods/finalizers
  READ resource.k8s.io resourceslices
  create,delete resource.k8s.io resourceclaims
  patch,update resource.k8s.io resourceclaims/binding
system:node
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io localsubjectaccessreviews,subjectaccessreviews
  READ - services
  create,READ - nodes
  patch,update - nodes/status
  patch,update - nodes
  create,patch,update -,events.k8s.io events
  READ - pods
  create,delete - pods
  patch,update - pods/status
  create - pods/eviction
  READ - configmaps,secrets
  get - persistentvolumeclaims,persistentvolumes
  get - endpoints
  create,READ certificates.k8s.io certificatesigningrequests
  create,delete,get,patch,update coordination.k8s.io leases
  get storage.k8s.io volumeattachments
  create - serviceaccounts/token
  get,patch,update - persistentvolumeclaims/status
  READ storage.k8s.io csidrivers
  create,delete,get,patch,update storage.k8s.io csinodes
  READ node.k8s.io runtimeclasses
  get resource.k8s.io resourceclaims
  deletecollection resource.k8s.io resourceslices
  get - serviceaccounts
system:controller:cronjob-controller
  get,list,update,watch batch cronjobs
  create,delete,get,list,patch,update,watch batch jobs
  update batch cronjobs/status
  update batch cronjobs/finalizers
  delete,list,watch - pods
  create,patch,update -,events.k8s.io events
system:controller:generic-garbage-collector
  delete,get,list,patch,update,watch * *
  create,patch,update -,events.k8s.io events
system:controller:job-controller
  get,list,patch,update,watch batch jobs
  update batch jobs/status
  update batch jobs/finalizers
  create,delete,list,patch,watch - pods
  create,patch,update -,events.k8s.io events
system:controller:namespace-controller
  delete,READ - namespaces
  update - namespaces/finalize,namespaces/status
  delete,deletecollection,READ * *
system:controller:node-controller
  delete,get,list,patch,update,watch - nodes
  patch,update - nodes/status
  patch,update - pods/status
  delete,READ - pods
  create,patch,update -,events.k8s.io events
system:controller:pod-garbage-collector
  delete,list,watch - pods
  READ - nodes
  patch - pods/status
system:controller:service-account-controller
  create - serviceaccounts
  create,patch,update -,events.k8s.io events
system:controller:ttl-after-finished-controller
  delete,READ batch jobs
  create,patch,update -,events.k8s.io events
"""
# NAME [= what it aggregates] [> what aggregates it], then its rules: verbs, groups (``-``: core) or ``urls``, resources
# or paths, and names if it has any. A line that is indented more goes on with the one before.

GIVEN_TO: dict[str, tuple[tuple[str, str], ...]] = {
    "cluster-admin": (("Group", "system:masters"),),
    "system:basic-user": (("Group", "system:authenticated"),),
    "system:discovery": (("Group", "system:authenticated"),),
    "system:public-info-viewer": (("Group", "system:authenticated"), ("Group", "system:unauthenticated")),
    "system:monitoring": (("Group", "system:monitoring"),),
    "system:service-account-issuer-discovery": (("Group", "system:serviceaccounts"),),
    "system:kube-controller-manager": (("User", "system:kube-controller-manager"),),
    "system:kube-scheduler": (("User", "system:kube-scheduler"),),
    "system:node": (),
}
"""The bindings, each called like its role; those of controllers go to their service accounts in ``kube-system``."""
