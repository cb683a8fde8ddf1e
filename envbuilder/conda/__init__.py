"""conda channels: what they hold, and which of their packages fit together."""
