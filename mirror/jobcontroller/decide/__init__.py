"""What one sync of a Job does, as pure functions from values to values: no clock, no client, no cache."""
