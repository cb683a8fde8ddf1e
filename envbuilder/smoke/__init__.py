"""The smoke stage: start the ranks, and judge from what each recorded whether they can talk."""

from .runner import MpiFrom, SmokeRequest, run_smoke

__all__ = ["MpiFrom", "SmokeRequest", "run_smoke"]
