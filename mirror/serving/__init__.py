"""TLS for people and API servers: certificates of our own or from files, one HTTPS address, health. Knows no job."""
