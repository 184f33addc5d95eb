"""What is printed beside a verdict is true of the numbers that it was made from."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositegp.paper import Claim, Experiment, markdown, section_5
from compositegp.paper.learning_claims import average_claims
from compositegp.paper.monotone import apart, falls, not_falling
from compositegp.paper.nox_claims import study_claims
from compositegp.paper.nox_forecasts import Score, in_weeks
from compositegp.paper.spatial_claims import SCHEMES, variance_claims

WEEKS = (1, 2, 5, 10, 25)


def scores_of(gp, cgp, sgp):
    """Scores whose errors are all the same, of the mean and of the median."""

    def score(name, error):
        return Score(name, error, error, 1.0, 1.0, 0.95, 1.0)

    pairs = [("CGP", cgp), ("FITC", sgp)]
    found = [score("GP", gp)]
    for name, errors in pairs:
        found += [score(f"{name} {in_weeks(size)}", error) for size, error in zip(WEEKS, errors, strict=True)]
    return found


def claims_about(results, start):
    return {claim.text: claim for claim in study_claims(results, None) if claim.text.startswith(start)}


@given(st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 9)), min_size=1, max_size=6))
def test_printed_numbers_have_the_order_of_the_true_ones(values):
    texts = apart(values)
    for (a, b), (one, other) in zip(itertools.pairwise(values), itertools.pairwise(texts), strict=True):
        assert np.sign(b - a) == np.sign(float(other) - float(one))
    assert all(float(text) == pytest.approx(value, abs=0.005001) for text, value in zip(texts, values, strict=True))


@given(st.lists(st.integers(0, 3).map(float), min_size=5, max_size=5))
def test_steps_that_do_not_fall_are_all_named(values):
    named = re.findall(r"(\d+) to (\d+)", not_falling(WEEKS, values))
    pairs = itertools.pairwise(zip(WEEKS, values, strict=True))
    assert named == [(str(a), str(b)) for (a, x), (b, y) in pairs if not y < x]
    assert falls(values) == (not named)


@pytest.mark.parametrize(
    ("sgp", "cgp", "word"), [(48.41, 47.81, "is better here"), (48.41, 48.41, "is as good here")]
)
@pytest.mark.parametrize("mean", ["profile", "constant"])
def test_better_and_as_good_are_different_words(sgp, cgp, word, mean):
    """And that the mean holds the shared pattern is said only where it does."""
    results = {("essingeleden", mean): scores_of(48.0, [cgp] * 5, [sgp] * 5)}
    found = claims_about(results, "the SGP with 5 weeks")
    assert len(found) == 2
    for claim in found.values():
        assert claim.verdict == "differs"
        assert word in claim.why
        assert ("is in the mean" in claim.why) == (mean == "profile")


@pytest.mark.parametrize("start", ["the gap between", "(not in the paper) longer segments"])
def test_a_reader_can_check_whether_gaps_close(start):
    cgp, sgp = [50.0, 49.0, 48.7, 48.60031, 48.60012], [49.0, 48.7, 48.65, 48.6, 48.6]
    for claim in claims_about({("essingeleden", "profile"): scores_of(48.6, cgp, sgp)}, start).values():
        printed = [float(text) for text in re.findall(r"\d+\.\d+", claim.found)]
        assert len(printed) == len(set(printed)) == 5
        assert falls(printed) == claim.holds


@pytest.mark.parametrize(("least", "words"), [(47.99996, "1 of 10 is below it"), (48.5, None)])
def test_a_bound_and_what_is_below_it_are_printed_apart(least, words):
    results = {("essingeleden", "profile"): scores_of(48.0, [least, 49, 49, 49, 49], [50.0] * 5)}
    for text, claim in claims_about(results, "the GP is the lower bound").items():
        gp, other = map(float, re.findall(r"\d+\.\d+", claim.found))
        assert "CGP 1 week with" in claim.found
        assert (other < gp) == (not claim.holds) == (words is not None)
        assert words is None or words in claim.why
        assert ("the predictor is the median" in claim.why) == text.endswith("median")


def test_the_case_nearest_to_the_papers_number_is_the_nearest():
    results = {
        ("hornsgatan", "profile"): scores_of(70.0, [1.0] * 5, [1.0] * 5),
        ("hornsgatan", "constant"): scores_of(78.0, [1.0] * 5, [1.0] * 5),
    }
    (claim,) = claims_about(results, "the RMSE of the GP").values()
    assert claim.found.startswith("78.00 (Hornsgatan, constant as mean")
    assert not claim.holds


@pytest.mark.parametrize("ratios", list(itertools.product((0.9, 1.2, 1.8), repeat=2)))
def test_variances_outside_of_the_rule_are_named(ratios):
    variances = {"GP": 1.0}
    for name in SCHEMES:
        variances |= {f"CGP, 4 {name}": ratios[0], f"CGP, 16 {name}": ratios[1]}
    for claim in variance_claims(variances):
        low, _, high = claim.why.partition("more than slightly higher")
        for count, ratio in zip((4, 16), ratios, strict=True):
            assert (re.search(rf"K = {count}\b", low) is not None) == (ratio < 1)
            assert (re.search(rf"K = {count}\b", high) is not None) == (ratio > 1.5)
        assert claim.holds == (not claim.why)


def test_reasons_about_averages_name_the_parameter_and_the_step():
    rows = [
        (size, name, error, 0.01, 0.02, 0.02, 1.0, seconds)
        for size, alpha, seconds in ((50, 0.030, 1.2), (100, 0.020, 0.9), (200, 0.021, 1.3))
        for name, error in (("α", alpha), ("θ", 1 / size))
    ]
    finals = {size: np.array([[alpha, 1 / size]] * 4) for size, alpha in ((50, 0.030), (100, 0.020), (200, 0.021))}
    claims = {claim.text: claim for claim in average_claims(rows, finals, 5.0)}
    better = claims["the accuracy of the weighted average improves as N_k becomes larger"]
    assert better.why.startswith("α: not from 100 to 200;")
    cost = claims["there is a trade-off between accuracy and computational cost"]
    assert cost.why.startswith("not from 50 to 100:")


def test_a_fall_within_its_standard_error_is_none():
    """α falls in two of three series and on average, but by less than the standard error of that average."""
    rows = [(size, name, 0.01, 0.01, 0.02, 0.02, 1.0, float(size)) for size in (50, 100) for name in ("α", "θ")]
    finals = {50: np.array([[3.0, 3.0]] * 3), 100: np.array([[1.0, 1.0], [2.0, 1.0], [4.2, 1.0]])}
    assert (finals[100][:, 0] ** 2).mean() < 9
    claim = average_claims(rows, finals, 5.0)[0]
    assert not claim.holds
    assert claim.why.startswith("α: not from 50 to 100;")


def test_a_claim_that_fails_needs_a_reason():
    with pytest.raises(ValueError, match="no reason is given"):
        Claim("the CGP is faster", "fewer seconds", "2 s against 1 s", False)


@pytest.mark.parametrize(
    ("exact", "total", "composite", "words"),
    [(2.0, 3.0, 1.0, "redundant.*not more than.*under-confident"), (2.0, 1.0, 3.0, "synergistic.*over-confident")],
)
def test_a_remark_that_fails_does_so_in_the_direction_that_is_printed(exact, total, composite, words):
    class Found:
        information_exact, information_sum, information_composite = exact, total, composite

    _, remark = section_5._remarks({"example": Found})
    assert not remark.holds
    assert re.search(words, remark.why)


def test_the_report_says_what_its_methods_are():
    text = markdown([Experiment("x", "X", "set")], "command", 2).split("## X")[0]
    for name in ("GP", "CGP", "SGP", "FITC", "conditional"):
        assert f"- **{name}**" in text
