"""What can go wrong between a client and an API server, done on purpose: scripted, or at random with a seed."""
