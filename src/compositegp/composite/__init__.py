"""The mechanism: everything is a weighted sum, over small sets of points, of an exact GP's quantity."""

from compositegp.composite.block_vecchia import conditioning_sets
from compositegp.composite.evidence import Evidence, collect_evidence, loadings, resolvable, too_much_evidence
from compositegp.composite.factors import FactoredStack, batches, factor_covariance, factor_stacks
from compositegp.composite.fisher import fisher_information
from compositegp.composite.influence import Influence
from compositegp.composite.latent import Latent
from compositegp.composite.likelihood import Score, score
from compositegp.composite.observations import Observations
from compositegp.composite.segmentation import SCHEMES, segment
from compositegp.composite.sum_over_terms import (
    check_finite,
    restrict,
    score_terms,
    total_score,
    with_coefficient_prior,
)
from compositegp.composite.terms import Composite, Stack, Term, check_composite

__all__ = [
    "SCHEMES",
    "Composite",
    "Evidence",
    "FactoredStack",
    "Influence",
    "Latent",
    "Observations",
    "Score",
    "Stack",
    "Term",
    "batches",
    "check_composite",
    "check_finite",
    "collect_evidence",
    "conditioning_sets",
    "factor_covariance",
    "factor_stacks",
    "fisher_information",
    "loadings",
    "resolvable",
    "restrict",
    "score",
    "score_terms",
    "segment",
    "too_much_evidence",
    "total_score",
    "with_coefficient_prior",
]
