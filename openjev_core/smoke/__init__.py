"""Checks of a running server, made as a client makes its calls.

The checks tell a deployment that works from one that does not: a start that never ends, a wrong key, a proxy that cuts
or alters replies, a model or template that makes no sense, a missing plugin. The wire contract in all its details is
checked by the public suite jevcompat. This room is a client: it knows the installed question types, and nothing of
engines, prompts or backends.
"""
