"""Errors that end a command, in one sentence."""


class CommandError(Exception):
    """Something that the user can put right."""
