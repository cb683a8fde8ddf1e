"""Proving: start the ranks, and judge from what each recorded whether they can talk."""
