"""Whole embedded control planes: API server, controllers and our Job controller together; demo, dev, tests."""
