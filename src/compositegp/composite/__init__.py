"""Composites: every quantity is a weighted sum, over small sets of points, of that quantity in an exact GP."""

from compositegp.composite.block_vecchia import CONDITIONING_SIZE, EarlierPoints, conditioning_sets
from compositegp.composite.cells import boundaries_of
from compositegp.composite.evidence import Evidence, collect_evidence, loadings, resolvable, too_much_evidence
from compositegp.composite.factors import (
    FactoredStack,
    batches,
    factor_covariance,
    factor_stacks,
    whiten_by_covariance,
)
from compositegp.composite.fisher import fisher_information
from compositegp.composite.influence import Influence
from compositegp.composite.latent import Latent
from compositegp.composite.likelihood import Score, score
from compositegp.composite.observations import Observations
from compositegp.composite.segmentation import (
    SCHEMES,
    SEGMENT_SIZE,
    by_labels,
    group_by_place,
    in_spreads,
    partition,
    segment,
    segments_of_tree,
)
from compositegp.composite.sum_over_terms import (
    check_finite,
    restrict,
    score_terms,
    total_score,
    with_coefficient_prior,
)
from compositegp.composite.terms import Composite, Stack, Term, check_composite
from compositegp.composite.tree_segments import Spreads, TreeSegments

__all__ = [
    "CONDITIONING_SIZE",
    "SCHEMES",
    "SEGMENT_SIZE",
    "Composite",
    "EarlierPoints",
    "Evidence",
    "FactoredStack",
    "Influence",
    "Latent",
    "Observations",
    "Score",
    "Spreads",
    "Stack",
    "Term",
    "TreeSegments",
    "batches",
    "boundaries_of",
    "by_labels",
    "check_composite",
    "check_finite",
    "collect_evidence",
    "conditioning_sets",
    "factor_covariance",
    "factor_stacks",
    "fisher_information",
    "group_by_place",
    "in_spreads",
    "loadings",
    "partition",
    "resolvable",
    "restrict",
    "score",
    "score_terms",
    "segment",
    "segments_of_tree",
    "too_much_evidence",
    "total_score",
    "whiten_by_covariance",
    "with_coefficient_prior",
]
