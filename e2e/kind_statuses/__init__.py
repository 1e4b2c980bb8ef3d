"""Statuses by chance, of every kind that is built in, against a real API server with its definition."""
