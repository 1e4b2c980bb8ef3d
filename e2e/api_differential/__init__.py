"""What our API server's rules of Jobs say of requests, compared with a real kube-apiserver, thousands of times."""
