"""The mechanism: everything is a weighted sum, over small sets of points, of an exact GP's quantity."""

from compositegp.composite.composite import Composite, Stack, Term, check_composite
from compositegp.composite.conditioning import conditioning_sets
from compositegp.composite.evidence import Evidence, collect_evidence
from compositegp.composite.factors import FactoredStack, Observations, factor_stacks
from compositegp.composite.latent import Latent
from compositegp.composite.likelihood import Score, score
from compositegp.composite.relevance import Influence
from compositegp.composite.segments import segment

__all__ = [
    "Composite",
    "Evidence",
    "FactoredStack",
    "Influence",
    "Latent",
    "Observations",
    "Score",
    "Stack",
    "Term",
    "check_composite",
    "collect_evidence",
    "conditioning_sets",
    "factor_stacks",
    "score",
    "segment",
]
