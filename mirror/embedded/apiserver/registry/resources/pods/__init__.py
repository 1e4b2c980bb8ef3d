"""Pods: ``strategy`` has the hooks, the others what they need; what templates have is in ``mirror.batch.pods``."""
