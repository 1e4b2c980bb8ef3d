"""From the bytes of a request to an object, as the Kubernetes decoder reads it, with its messages; for ``bodies``."""
