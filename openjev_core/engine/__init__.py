"""Evaluating requests on a loaded model."""
