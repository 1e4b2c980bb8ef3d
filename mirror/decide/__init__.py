"""Snapshot in, plan out: pure. Ordered rules, each with its reason; ``controllers`` observes before and applies after."""
