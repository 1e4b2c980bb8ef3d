"""What runs beside an API server: garbage collection, namespaces, CronJobs, scheduler, kubelets, nodes' lifecycle."""

from mirror.embedded.neighbours.runner import NAMES, run
from mirror.embedded.neighbours.settings import Settings

__all__ = ["NAMES", "Settings", "run"]
