"""Troubles that happen in practice, caused on real control planes, and the document that shows how they look."""
