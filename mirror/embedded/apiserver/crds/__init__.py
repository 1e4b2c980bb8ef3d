"""Custom resource definitions (``apiextensions.k8s.io/v1``), and the kinds that they define.

Not here: rules in CEL and conversion by webhooks. The former are accepted with a warning, the latter are refused.
"""
