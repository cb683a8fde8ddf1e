"""Running the build script's steps."""

from .builder import BuildPlaces, Listener, build, hand_over, prepare, tidy

__all__ = ["BuildPlaces", "Listener", "build", "hand_over", "prepare", "tidy"]
