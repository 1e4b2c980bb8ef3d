"""The same life of a Job, played on a real API server under kube-controller-manager and under ours, and compared."""
