"""What is wrong with an object: the rules of Kubernetes, in its words and its order. Pure.

Rules of custom resource definitions are in ``crds``.
"""
