"""A standing attack on compositegp: what could go wrong is tried, thousands of times, and counted.

``python -m attack`` runs all of it, seeded, in about ten minutes on two cores, and ends with an exit code other than
zero if a figure that should be zero is not. ``docs/trust.md`` says what each part promises.
"""
