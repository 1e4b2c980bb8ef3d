"""Which worker gets a Job, and who is next: pure. One file per policy; who calls it: ``controllers.assigning``."""
