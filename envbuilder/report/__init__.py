"""One file for a support desk, without secrets."""
