"""Whole embedded control planes: API server, neighbours and our Job controller together; demo, dev, tests."""
