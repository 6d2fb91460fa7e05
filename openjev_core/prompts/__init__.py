"""From a state and questions to token ids."""
