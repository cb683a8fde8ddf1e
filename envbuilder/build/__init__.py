"""Running the build script's steps."""

from .builder import BuildPlaces, Listener, build, prepare

__all__ = ["BuildPlaces", "Listener", "build", "prepare"]
