"""Random rules in CEL on random objects: a real API server and ours refuse the same, in the same words."""
