"""Running the build script's steps."""

from .builder import BuildPlaces, build, hand_over, prepare, tidy

__all__ = ["BuildPlaces", "build", "hand_over", "prepare", "tidy"]
