"""Documents: recipes, sites and knowledge, found by name, read with positions and checked."""

# Nothing is imported here: a shell that completes a recipe's name needs no pydantic and no PyYAML.
