"""Running models: token ids in, label logprobs out."""
