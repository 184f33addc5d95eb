"""Posteriors: beliefs about latent values, from a composite at once or from its segments one by one."""

from compositegp.posteriors.belief import Belief, Marginals, Whitened, prior
from compositegp.posteriors.committees import RULES, committee
from compositegp.posteriors.composite_posterior import (
    FactoredComposite,
    belief_about_inducing,
    believe,
    factorize,
    posterior,
)
from compositegp.posteriors.groups import gather, predict_groups, project_groups
from compositegp.posteriors.inducing import project
from compositegp.posteriors.local_kriging import NearestPredictor, default_group_size, nearest, predict_from
from compositegp.posteriors.neighbor_search import Neighbours
from compositegp.posteriors.recursion import rebase, update

__all__ = [
    "RULES",
    "Belief",
    "FactoredComposite",
    "Marginals",
    "NearestPredictor",
    "Neighbours",
    "Whitened",
    "belief_about_inducing",
    "believe",
    "committee",
    "default_group_size",
    "factorize",
    "gather",
    "nearest",
    "posterior",
    "predict_from",
    "predict_groups",
    "prior",
    "project",
    "project_groups",
    "rebase",
    "update",
]
