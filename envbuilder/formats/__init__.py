"""Files in which other tools keep environments: conda's explicit lists, conda-lock.yml, pixi.lock,
environment.yml. Each is a module that reads its text to a value and writes a value as its text.
"""
