"""Admission of writes: built-in plugins, and webhooks of the cluster's users over HTTPS; ``chain`` calls them."""
