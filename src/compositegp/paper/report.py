"""The report of experiments in Markdown: what the methods are, every claim in one line, and the rows of each claim."""

from collections.abc import Sequence

from compositegp.paper.claims import FIGURES, Claim, Experiment, table
from compositegp.paper.fingerprint import code_hash

_METHODS = (
    "- **GP**: the exact Gaussian process of all observations.",
    "- **CGP**, the paper's composite GP: the observations are cut into segments, each segment is an exact GP, and "
    "what the segments say about the test points is added up as if they were independent.",
    "- **SGP**, a sparse GP: the test points are predicted from the values at a few inducing points, which are "
    "estimated from all observations.",
    "- **FITC** (fully independent training conditional): the SGP that is computed here. Given the values at the "
    "inducing points, the observations are taken to be independent of each other.",
    "- **conditional** (not in the paper; block Vecchia): the segments of the CGP, but each is conditioned on the "
    "observations that follow it in time. “1 week given 2” has segments of one week, each conditioned on the next two "
    "weeks.",
    "",
    "RMSE and MAE are the root mean squared and the mean absolute error; CRPS and nats are in the "
    "[glossary](theory.md#glossary).",
)
_DATA = (
    "The NOx experiment needs the Stockholm file `nox_stockholm_2009_2014.csv.gz`, which is not part of this "
    "repository: the environment variable `COMPOSITEGP_DATA` names its folder (or `--data` names the file). It has a "
    "column `timestamp` with every hour from 2009-01-01 01:00 to 2014-12-31 00:00, and a column such as "
    "`nox_hornsgatan` for each station. The measurements are public: those of SLB-analys, as the paper's first author "
    "prepared them, with gaps filled, in the GitHub repository `xiumingliu/air-pollution-analysis`. "
    "`nox_stockholm_author_errors.csv` in the same folder, which may be absent, has the errors of the author's own "
    "runs, from the same repository. Without the Stockholm file the study runs on another series, and says so."
)


def markdown(experiments: Sequence[Experiment], command: str, cores: int, load: float | None = None) -> str:
    """A report of experiments, in Markdown.

    Parameters
    ----------
    experiments : sequence of Experiment
    command : str
        The command that ran them.
    cores : int
        Of the machine.
    load : float, optional
        Load average of the machine before the run: what other programs took while seconds were measured.

    Returns
    -------
    str

    Examples
    --------
    >>> claims = [Claim("errors grow", "the second is larger", "from 1 to 2", True, "")]
    >>> text = markdown([Experiment("x", "Section 9: errors", "A grid.", claims)], "compositegp reproduce x", 2)
    >>> print(text.split("## ")[2])
    Section 9: errors
    <BLANKLINE>
    A grid.
    <BLANKLINE>
    | claim | rule | found | verdict |
    |---|---|---|---|
    | errors grow | the second is larger | from 1 to 2 | agrees |
    <BLANKLINE>
    """
    times = ", ".join(f"{each.name} {each.seconds:.0f} s" for each in experiments)
    lines = [
        "# The paper's experiments, reproduced",
        "",
        f"Printed by `{command}` in {sum(each.seconds for each in experiments):.0f} s on {cores} core(s): {times}. "
        + ("" if load is None else f"When it began, other programs gave the machine a load of {load:.1f}. ")
        + f"Code of the experiments: `{code_hash()}`.",
        "",
        *_METHODS,
        "",
        _DATA,
        "",
        "## All claims",
        "",
        *_summary(experiments),
        "",
    ]
    for experiment in experiments:
        lines += [f"## {experiment.title}", "", experiment.setting, ""]
        lines += ["| claim | rule | found | verdict |", "|---|---|---|---|"]
        for claim in experiment.claims:
            verdict = claim.verdict if claim.holds else f"**{claim.verdict}**: {claim.why}"
            lines.append("| " + " | ".join((claim.full_text, claim.rule, claim.found, verdict)) + " |")
        for file, caption in experiment.pictures:
            lines += ["", f"![{caption}]({FIGURES}/{file})"]
        for text in experiment.tables:
            lines += ["", text]
        lines.append("")
    return "\n".join(lines)


def cases_of(experiments: Sequence[Experiment]) -> dict[tuple[str, str], list[Claim]]:
    """The rows of each claim, by the section and the text of the claim.

    Examples
    --------
    >>> rows = [Claim("errors grow", "", "", True, "", case=name) for name in ("here", "there")]
    >>> {key: len(found) for key, found in cases_of([Experiment("x", "Section 9: errors", "", rows)]).items()}
    {('9', 'errors grow'): 2}
    """
    found: dict[tuple[str, str], list[Claim]] = {}
    for experiment in experiments:
        section = experiment.title.partition(":")[0].removeprefix("Section ")
        for claim in experiment.claims:
            found.setdefault((section, claim.text), []).append(claim)
    return found


def _summary(experiments: Sequence[Experiment]) -> list[str]:
    """How many claims agree, and a line for each of them."""
    cases = cases_of(experiments)
    of_the_paper = [rows for rows in cases.values() if rows[0].of_the_paper]
    agree = sum(all(row.holds for row in rows) for rows in of_the_paper)
    differ = sum(not any(row.holds for row in rows) for rows in of_the_paper)
    rows = [
        (section, text, f"{sum(row.holds for row in found)} of {len(found)}")
        for (section, text), found in cases.items()
    ]
    return [
        f"{len(of_the_paper)} claims are the paper's: {agree} agree in every case, "
        f"{len(of_the_paper) - agree - differ} in some cases and {differ} in none. A claim about several stations, "
        "means, predictors or ways to make segments has a case for each of them, and each case has a row below that "
        "states the rule of its verdict. Claims that begin with “(not in the paper)” are ours. The CSV files that the "
        "command writes hold every prediction and every estimate.",
        "",
        table(("section", "claim", "cases that agree"), rows),
    ]
