"""What ``mirror/batch`` says of a request, compared with what a real kube-apiserver says, thousands of times."""
