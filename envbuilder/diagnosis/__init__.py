"""What the lines of a log mean: the one search for symptoms, whoever wrote the log."""
