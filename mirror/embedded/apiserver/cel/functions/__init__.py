"""Functions that expressions may call: the standard ones, cel-go's extensions, and Kubernetes' libraries."""
