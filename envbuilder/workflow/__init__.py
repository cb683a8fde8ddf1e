"""Code that several verbs share: from options to inputs, to a lock, to a launch request."""
