"""What every other room builds on: kinds, errors, decoding, the fields of each kind, selectors. Pure.

Nothing here knows a request or the storage's history; rules about values are in ``validation``.
"""
