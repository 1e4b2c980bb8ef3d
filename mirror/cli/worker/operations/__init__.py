"""What the commands of ``mirror worker`` do on clusters, without click: objects, checks, drains. Commands print it."""
