"""What the mirror and the Job controller need of batch/v1, pure: status rules, conditions, times, index text.

Defaults and the rules of create and update are ``embedded.apiserver``'s.
"""
