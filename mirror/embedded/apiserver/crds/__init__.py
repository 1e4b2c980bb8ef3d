"""Custom resource definitions (``apiextensions.k8s.io/v1``), and the kinds that they define.

Not here: what evaluates their rules (``cel``), and conversion by webhooks, which is refused.
"""
