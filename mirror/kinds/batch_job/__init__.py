"""batch/v1 Jobs: ``kind`` is what the rest of the manager sees of this package. Pure."""
