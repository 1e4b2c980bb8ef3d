"""Kubelets: what runs pods, or says that it does; ``machine`` has the life of a pod, a ``runtime`` its containers."""
