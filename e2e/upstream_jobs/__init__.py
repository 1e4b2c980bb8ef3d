"""The integration tests that Kubernetes has for its Job controller, with ours, a process, in the place of theirs."""
