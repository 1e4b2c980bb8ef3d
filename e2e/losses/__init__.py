"""What becomes of Jobs when their worker is lost: stories that share one loss (``stage``)."""
