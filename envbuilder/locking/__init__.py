"""From a plan to a lock: which files its pins are, wheels and sources, with hash and size."""
