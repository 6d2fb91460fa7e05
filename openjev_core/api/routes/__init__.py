"""What answers each route of the wire contract."""
