"""The smoke stage: start the ranks, and judge from what each recorded whether they can talk."""

from .runner import SmokeRequest, run_smoke

__all__ = ["SmokeRequest", "run_smoke"]
