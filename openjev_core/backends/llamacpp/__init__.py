"""llama.cpp over HTTP: in this process through xllamacpp, or a llama-server that someone else runs."""
