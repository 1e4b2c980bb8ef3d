"""Worker clusters: registered by Secrets, each with its own client, watches and task scope (D12, D13, D19)."""
