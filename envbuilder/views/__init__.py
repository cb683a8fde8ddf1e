"""Results as text for people: pure functions, no printing. JSON is the form for programs."""
