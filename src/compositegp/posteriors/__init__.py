"""Posteriors: beliefs about latent values, from a composite at once or from its segments one by one."""

from compositegp.posteriors.belief import Belief, Marginals, Whitened, joined, prior, prior_of
from compositegp.posteriors.block_prediction import normal_equations, predict_from, predict_prefixes
from compositegp.posteriors.committees import RULES, ask_committee, committee
from compositegp.posteriors.composite_posterior import (
    FactoredComposite,
    belief_about_inducing,
    believe,
    factorize,
    posterior,
)
from compositegp.posteriors.cross_validation import leave_one_out
from compositegp.posteriors.exact_prediction import exact_belief, exact_marginals, exact_means
from compositegp.posteriors.field_draws import FieldDraws, draw_field
from compositegp.posteriors.gaps import Gaps, around_in_gaps, gap_terms
from compositegp.posteriors.groups import gather, predict_groups, project_groups
from compositegp.posteriors.inducing import project, project_belief
from compositegp.posteriors.local_kriging import (
    N_NEIGHBORS,
    WIDE_LIMIT,
    NearestPredictor,
    announce_union,
    default_group_size,
    nearest,
)
from compositegp.posteriors.neighbor_search import FEWEST_NEAR, NeighborSearch
from compositegp.posteriors.neighbors import Neighbors
from compositegp.posteriors.precision import Precision
from compositegp.posteriors.surroundings import COMPARED, WINDOWS, Neighborhood, Surrounded, join_surrounded

__all__ = [
    "COMPARED",
    "FEWEST_NEAR",
    "N_NEIGHBORS",
    "RULES",
    "WIDE_LIMIT",
    "WINDOWS",
    "Belief",
    "FactoredComposite",
    "FieldDraws",
    "Gaps",
    "Marginals",
    "NearestPredictor",
    "NeighborSearch",
    "Neighborhood",
    "Neighbors",
    "Precision",
    "Surrounded",
    "Whitened",
    "announce_union",
    "around_in_gaps",
    "ask_committee",
    "belief_about_inducing",
    "believe",
    "committee",
    "default_group_size",
    "draw_field",
    "exact_belief",
    "exact_marginals",
    "exact_means",
    "factorize",
    "gap_terms",
    "gather",
    "join_surrounded",
    "joined",
    "leave_one_out",
    "nearest",
    "normal_equations",
    "posterior",
    "predict_from",
    "predict_groups",
    "predict_prefixes",
    "prior",
    "prior_of",
    "project",
    "project_belief",
    "project_groups",
]
