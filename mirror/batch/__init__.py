"""What the mirror, the Job controller and the embedded API server share of batch/v1, pure.

Defaults and the rules of create and update are ``embedded.apiserver``'s.
"""
