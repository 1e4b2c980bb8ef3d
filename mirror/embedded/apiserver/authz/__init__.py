"""What a user may do: RBAC, impersonation, and the roles with which a cluster begins; ``authorizer`` answers.

It judges what ``request.info`` has read in the request, and nothing else.
"""
