"""The program that every rank of a smoke test runs. It imports nothing of envbuild."""
