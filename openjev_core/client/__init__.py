"""A client of running servers, of either wire. It asks them; what opens an engine behind openjev is elsewhere."""
