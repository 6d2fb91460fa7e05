"""The `openjev` command."""
