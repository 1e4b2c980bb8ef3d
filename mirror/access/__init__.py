"""Logs, pods, events and differences of mirrors for users, each by their own rights on the management cluster."""
