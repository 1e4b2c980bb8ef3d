"""The wire: requests as values, transport, errors by meaning, watch decoding, kubeconfig policy. Knows no job rule."""
