"""The commands for who runs workers: ``mirror worker`` add, check, list, cordon, drain, remove."""
