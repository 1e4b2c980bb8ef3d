"""Snapshot in, plan out: pure. Ordered rules, each with its reason; ``controllers`` observes and applies."""
