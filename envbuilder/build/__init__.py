"""Running the build script's steps."""

from .builder import BuildPlaces, Listener, build, prepare, tidy

__all__ = ["BuildPlaces", "Listener", "build", "prepare", "tidy"]
