"""What runs beside an API server: garbage collection, namespaces, CronJobs, scheduler, kubelets, nodes' lifecycle."""
