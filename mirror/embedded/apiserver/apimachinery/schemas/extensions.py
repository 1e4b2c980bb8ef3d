"""The fields of custom resource definitions, of webhook configurations, and of what both exchange with webhooks.

The language is that of ``batch_schema``.
"""

TABLE = """
MutatingWebhookConfiguration: apiVersion=s kind=s metadata=ObjectMeta webhooks=[MutatingWebhook]
MutatingWebhook: name=s! clientConfig=WebhookClientConfig! rules=[RuleWithOperations] failurePolicy=*s matchPolicy=*s
    namespaceSelector=*LabelSelector objectSelector=*LabelSelector sideEffects=*s! timeoutSeconds=*i
    admissionReviewVersions=[s]! reinvocationPolicy=*s matchConditions=[MatchCondition]
WebhookClientConfig: url=*s service=*ServiceReference caBundle=y
ServiceReference: namespace=s! name=s! path=*s port=*i
RuleWithOperations: operations=[s] apiGroups=[s] apiVersions=[s] resources=[s] scope=*s
MatchCondition: name=s! expression=s!
ValidatingWebhookConfiguration: apiVersion=s kind=s metadata=ObjectMeta webhooks=[ValidatingWebhook]
ValidatingWebhook: name=s! clientConfig=WebhookClientConfig! rules=[RuleWithOperations] failurePolicy=*s
    matchPolicy=*s namespaceSelector=*LabelSelector objectSelector=*LabelSelector sideEffects=*s! timeoutSeconds=*i
    admissionReviewVersions=[s]! matchConditions=[MatchCondition]
CustomResourceDefinition: apiVersion=s kind=s metadata=ObjectMeta spec=CustomResourceDefinitionSpec!
    status=CustomResourceDefinitionStatus
CustomResourceDefinitionSpec: group=s! names=CustomResourceDefinitionNames! scope=s!
    versions=[CustomResourceDefinitionVersion]! conversion=*CustomResourceConversion preserveUnknownFields=b
CustomResourceDefinitionNames: plural=s! singular=s shortNames=[s] kind=s! listKind=s categories=[s]
CustomResourceDefinitionVersion: name=s! served=b! storage=b! deprecated=b deprecationWarning=*s
    schema=*CustomResourceValidation subresources=*CustomResourceSubresources
    additionalPrinterColumns=[CustomResourceColumnDefinition] selectableFields=[SelectableField]
CustomResourceValidation: openAPIV3Schema=*JSONSchemaProps
JSONSchemaProps: id=s $schema=s $ref=*s description=s type=s format=s title=s default=? maximum=*f exclusiveMaximum=b
    minimum=*f exclusiveMinimum=b maxLength=*i minLength=*i pattern=s maxItems=*i minItems=*i uniqueItems=b
    multipleOf=*f enum=[?] maxProperties=*i minProperties=*i required=[s] items=*JSONSchemaProps|[JSONSchemaProps]
    allOf=[JSONSchemaProps] oneOf=[JSONSchemaProps] anyOf=[JSONSchemaProps] not=*JSONSchemaProps
    properties={JSONSchemaProps} additionalProperties=*JSONSchemaProps|b patternProperties={JSONSchemaProps}
    dependencies={JSONSchemaProps|[s]} additionalItems=*JSONSchemaProps|b definitions={JSONSchemaProps}
    externalDocs=*ExternalDocumentation example=? nullable=b x-kubernetes-preserve-unknown-fields=*b
    x-kubernetes-embedded-resource=b x-kubernetes-int-or-string=b x-kubernetes-list-map-keys=[s]
    x-kubernetes-list-type=*s x-kubernetes-map-type=*s x-kubernetes-validations=[ValidationRule]
ExternalDocumentation: description=s url=s
ValidationRule: rule=s! message=s messageExpression=s reason=*s fieldPath=s optionalOldSelf=*b
CustomResourceSubresources: status=*CustomResourceSubresourceStatus scale=*CustomResourceSubresourceScale
CustomResourceSubresourceStatus:
CustomResourceSubresourceScale: specReplicasPath=s! statusReplicasPath=s! labelSelectorPath=*s
CustomResourceColumnDefinition: name=s! type=s! format=s description=s priority=i jsonPath=s!
SelectableField: jsonPath=s!
CustomResourceConversion: strategy=s! webhook=*WebhookConversion
WebhookConversion: clientConfig=*ApiextensionsWebhookClientConfig conversionReviewVersions=[s]!
ApiextensionsWebhookClientConfig: url=*s service=*ApiextensionsServiceReference caBundle=y
ApiextensionsServiceReference: namespace=s! name=s! path=*s port=*i
CustomResourceDefinitionStatus: conditions=[CustomResourceDefinitionCondition]!
    acceptedNames=CustomResourceDefinitionNames! storedVersions=[s]! observedGeneration=i
CustomResourceDefinitionCondition: type=s! status=s! lastTransitionTime=t! reason=s message=s observedGeneration=i
AdmissionReview: apiVersion=s kind=s request=*AdmissionRequest response=*AdmissionResponse
AdmissionRequest: uid=s! kind=GroupVersionKind! resource=GroupVersionResource! subResource=s
    requestKind=*GroupVersionKind requestResource=*GroupVersionResource requestSubResource=s name=s namespace=s
    operation=s! userInfo=UserInfo! object=? oldObject=? dryRun=*b options=?
AdmissionResponse: uid=s! allowed=b! status=*Status patch=y patchType=*s auditAnnotations={s} warnings=[s]
ConversionReview: apiVersion=s kind=s request=*ConversionRequest response=*ConversionResponse
ConversionRequest: uid=s! desiredAPIVersion=s! objects=[?]!
ConversionResponse: uid=s! convertedObjects=[?]! result=Status!
"""
