"""vLLM over HTTP: completions of one token, whose log-probabilities are read at the labels."""
