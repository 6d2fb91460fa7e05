"""Finding question types: hooks, the registry, and the converter and schemas built from it."""
