"""Proving a deployment: checks against a running server, made as a client makes its calls.

This room is a client. It knows the wire contract and the installed question types, and nothing of engines, prompts or
backends.
"""
