"""Posteriors: beliefs about latent values, from a composite at once or from its segments one by one."""

from compositegp.posteriors.belief import Belief, Marginals, prior
from compositegp.posteriors.inducing import project
from compositegp.posteriors.nearest import nearest
from compositegp.posteriors.posterior import FactoredComposite, factorize, posterior
from compositegp.posteriors.recursion import update

__all__ = [
    "Belief",
    "FactoredComposite",
    "Marginals",
    "factorize",
    "nearest",
    "posterior",
    "prior",
    "project",
    "update",
]
