"""The application on sockets: hypercorn's protocols, graceful stops, TLS, worker processes."""
