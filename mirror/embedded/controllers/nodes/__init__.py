"""What becomes of nodes that are lost or gone, and of the pods on them."""
