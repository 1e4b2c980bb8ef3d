"""Runs Kubernetes Jobs on worker clusters and mirrors their status back."""
