"""What is served, told to clients: groups and versions, OpenAPI, health."""
