"""What an operator sees of a running manager: logs, metrics, traces. Knows no Kubernetes and no job."""
