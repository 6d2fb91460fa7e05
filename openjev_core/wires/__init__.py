"""Wires: the shapes in which clients write requests and read evaluations. The engine knows none of them."""
