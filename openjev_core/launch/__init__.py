"""Child processes and the server's life."""
