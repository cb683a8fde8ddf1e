"""From the components decided to a plan: environment edits, ordered loads, steps."""

from .planner import PlanRequest, make_plan

__all__ = ["PlanRequest", "make_plan"]
