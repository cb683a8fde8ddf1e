"""The machine that envbuild runs on: programs, Pythons, MPIs, GPUs and modules. Only reads."""
