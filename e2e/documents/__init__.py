"""Commands in the documents, and people who type them."""
