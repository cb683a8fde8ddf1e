"""envbuild: deep-learning environments for HPC sites that prove their ranks can talk."""

__version__ = "0.1.0"
