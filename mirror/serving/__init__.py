"""TLS for people and API servers: certificates of our own or from files, and the one HTTPS address. Knows no job."""
