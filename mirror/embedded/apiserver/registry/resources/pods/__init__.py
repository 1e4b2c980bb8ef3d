"""Pods: ``strategy`` has the hooks, the others what they need; what templates have is in ``validation.pods``."""
