"""A Kubernetes control plane in one process, without a server of anybody else; see ``docs/embedded.md``."""
