"""One suite of API behaviour, played on a real kube-apiserver and on the embedded server: both do what it says."""
