"""What an environment holds, whoever built it, and what is wrong with it. Only reads.

Nothing of the environment is imported or run but by ``imports``, which is asked for. ``reading``
makes the facts, ``checks`` look at them.
"""
