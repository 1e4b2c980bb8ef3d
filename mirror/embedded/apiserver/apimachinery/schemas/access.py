"""The fields of RBAC kinds and of the reviews of tokens and access.

The language is that of ``batch_schema``.
"""

TABLE = """
Role: apiVersion=s kind=s metadata=ObjectMeta rules=[PolicyRule]!
PolicyRule: verbs=[s]! apiGroups=[s] resources=[s] resourceNames=[s] nonResourceURLs=[s]
RoleBinding: apiVersion=s kind=s metadata=ObjectMeta subjects=[Subject] roleRef=RoleRef!
Subject: kind=s! apiGroup=s name=s! namespace=s
RoleRef: apiGroup=s! kind=s! name=s!
ClusterRole: apiVersion=s kind=s metadata=ObjectMeta rules=[PolicyRule]! aggregationRule=*AggregationRule
AggregationRule: clusterRoleSelectors=[LabelSelector]
ClusterRoleBinding: apiVersion=s kind=s metadata=ObjectMeta subjects=[Subject] roleRef=RoleRef!
TokenReview: apiVersion=s kind=s metadata=ObjectMeta spec=TokenReviewSpec! status=TokenReviewStatus
TokenReviewSpec: token=s audiences=[s]
TokenReviewStatus: authenticated=b user=UserInfo audiences=[s] error=s
UserInfo: username=s uid=s groups=[s] extra={[s]}
TokenRequest: apiVersion=s kind=s metadata=ObjectMeta spec=TokenRequestSpec! status=TokenRequestStatus
TokenRequestSpec: audiences=[s]! expirationSeconds=*i! boundObjectRef=*BoundObjectReference!
BoundObjectReference: apiVersion=s kind=s name=s uid=s
TokenRequestStatus: token=s! expirationTimestamp=t!
SelfSubjectReview: apiVersion=s kind=s metadata=ObjectMeta status=SelfSubjectReviewStatus
SelfSubjectReviewStatus: userInfo=UserInfo
SubjectAccessReview: apiVersion=s kind=s metadata=ObjectMeta spec=SubjectAccessReviewSpec!
    status=SubjectAccessReviewStatus
SubjectAccessReviewSpec: resourceAttributes=*ResourceAttributes nonResourceAttributes=*NonResourceAttributes user=s
    groups=[s] extra={[s]} uid=s
ResourceAttributes: namespace=s verb=s group=s version=s resource=s subresource=s name=s
    fieldSelector=*FieldSelectorAttributes labelSelector=*LabelSelectorAttributes
FieldSelectorAttributes: rawSelector=s requirements=[FieldSelectorRequirement]
LabelSelectorAttributes: rawSelector=s requirements=[LabelSelectorRequirement]
NonResourceAttributes: path=s verb=s
SubjectAccessReviewStatus: allowed=b! denied=b reason=s evaluationError=s
LocalSubjectAccessReview: apiVersion=s kind=s metadata=ObjectMeta spec=SubjectAccessReviewSpec!
    status=SubjectAccessReviewStatus
SelfSubjectAccessReview: apiVersion=s kind=s metadata=ObjectMeta spec=SelfSubjectAccessReviewSpec!
    status=SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec: resourceAttributes=*ResourceAttributes nonResourceAttributes=*NonResourceAttributes
SelfSubjectRulesReview: apiVersion=s kind=s metadata=ObjectMeta spec=SelfSubjectRulesReviewSpec!
    status=SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec: namespace=s
SubjectRulesReviewStatus: resourceRules=[ResourceRule]! nonResourceRules=[NonResourceRule]! incomplete=b!
    evaluationError=s
ResourceRule: verbs=[s]! apiGroups=[s] resources=[s] resourceNames=[s]
NonResourceRule: verbs=[s]! nonResourceURLs=[s]
"""
