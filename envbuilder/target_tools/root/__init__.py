"""The root: where environments live. It describes itself; there is no database."""
