"""Pages for people. They hold no data and need no key."""
