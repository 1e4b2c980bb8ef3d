"""Claims new Jobs and checks our annotations (D16): pure rules, and the routes that answer the API server."""
