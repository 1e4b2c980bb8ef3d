"""Admission: the life of namespaces, what is built in, and webhooks of the cluster's users, called over HTTPS."""
