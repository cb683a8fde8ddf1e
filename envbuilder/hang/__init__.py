"""Ranks that run and do not go on: their processes, their stacks, and who waits for whom.

``processes`` finds the ranks of a job on this machine, ``stacks`` has py-spy read what their main
threads do, ``conclusion`` compares them. Nothing is sent to a process: py-spy holds it for the
milliseconds in which its memory is read.
"""
