"""From the bytes of a request to an object, in the way and the words of the Kubernetes decoder; for ``bodies``."""
