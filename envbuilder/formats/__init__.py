"""Files of other tools that state software: packages of conda and pip, modules, container files.

Each is a module that reads its text to a value; locks are also written.
"""
