"""Analysis: what the approximation costs, in closed form (the paper's Section 5, for any composite)."""

from compositegp.analysis.compare import Report, compare

__all__ = ["Report", "compare"]
