"""A page of HTML about the environments of a root."""
