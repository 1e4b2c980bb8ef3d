"""Random sequences of requests to a real kube-apiserver and to the embedded server: both must say the same."""
