"""The values that cross from one stage to the next. All frozen; none starts a process."""
