"""Who sends a request: client certificates, bearer tokens, and the tokens of service accounts."""
