"""Starting ranks: hosts, launchers and schedulers."""
