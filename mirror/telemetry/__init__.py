"""What an operator sees of a running manager: logs, metrics, health. Knows no Kubernetes and no job."""
