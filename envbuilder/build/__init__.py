"""Building: backends, targets, scripts, and emulated systems."""
