"""The paper's experiments, each with its figures and its claims beside what was found."""
