"""What is printed beside a verdict is true of the numbers that it was made from."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositegp.paper import Claim, Experiment, markdown
from compositegp.paper.learning_claims import average_claims, recursion_claim, segment_claims
from compositegp.paper.monotone import apart, digits_apart, falls, not_falling
from compositegp.paper.nox_claims import error_claims
from compositegp.paper.nox_data_claims import data_claims
from compositegp.paper.nox_forecasts import Score, Work, in_weeks
from compositegp.paper.nox_runtime_claims import forecaster_claims, runtime_claims, scaling_claim
from compositegp.paper.remarks import remark_claims
from compositegp.paper.spatial_claims import SCHEMES, field_claims, variance_claims
from compositegp.paper.time_series_claims import recursion_claim as posterior_claim

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
    return {claim.full_text: claim for claim in error_claims(results, None) if claim.text.startswith(start)}


@given(st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 9)), min_size=1, max_size=6))
def test_printed_numbers_have_the_order_of_the_true_ones(values):
    texts = apart(values)
    for (a, b), (one, other) in zip(itertools.pairwise(values), itertools.pairwise(texts), strict=True):
        assert np.sign(b - a) == np.sign(float(other) - float(one))
    assert all(float(text) == pytest.approx(value, abs=0.005001) for text, value in zip(texts, values, strict=True))


@given(st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=6))
def test_gaps_are_printed_with_digits_that_say_something(values):
    """A small gap is not printed as zero, and the order of neighbours is that of the true numbers."""
    texts = digits_apart(values)
    for (a, b), (one, other) in zip(itertools.pairwise(values), itertools.pairwise(texts), strict=True):
        assert np.sign(b - a) == np.sign(float(other) - float(one))
    assert all(float(text) == pytest.approx(value, rel=0.0051) for text, value in zip(texts, values, strict=True))


@given(st.lists(st.integers(0, 3).map(float), min_size=5, max_size=5))
def test_steps_that_do_not_fall_are_all_named(values):
    named = re.findall(r"(\d+) to (\d+)", not_falling(WEEKS, values))
    pairs = itertools.pairwise(zip(WEEKS, values, strict=True))
    assert named == [(str(a), str(b)) for (a, x), (b, y) in pairs if not y < x]
    assert falls(values) == (not named)


@pytest.mark.parametrize(
    ("sgp", "cgp", "word"), [(48.41, 47.81, "is better by 0.6 here"), (48.41, 48.41, "is as good here")]
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
    cgp, sgp = [50.0, 49.0, 48.7, 48.60031, 48.60002], [49.0, 48.7, 48.65, 48.6, 48.6]
    for claim in claims_about({("essingeleden", "profile"): scores_of(48.6, cgp, sgp)}, start).values():
        printed = [float(text) for text in claim.found.partition(" at ")[0].split(", ")]
        assert len(printed) == len(set(printed)) == 5
        assert min(printed) > 0
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
        Claim("the CGP is faster", "fewer seconds", "2 s against 1 s", False, "")


def test_no_claim_can_leave_its_reason_out():
    """Not even one that holds today: on the day that it fails, the whole report would be lost."""
    with pytest.raises(TypeError, match="why"):
        Claim("the CGP is faster", "fewer seconds", "1 s against 2 s", True)


class Found:
    def __init__(self, exact, total, composite):
        self.information_exact, self.information_sum, self.information_composite = exact, total, composite


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((2.0, 3.0, 1.0), "redundant.*not more than.*under-confident"),
        ((2.0, 1.0, 3.0), "synergistic.*over-confident"),
    ],
)
def test_a_remark_that_fails_does_so_in_the_direction_that_is_printed(numbers, words):
    _, remark = remark_claims({"example": Found(*numbers)})
    assert not remark.holds
    assert re.search(words, remark.why)


def test_a_remark_names_every_example_that_it_fails_in():
    reports = {"one": Found(2.0, 3.0, 1.0), "two": Found(2.0, 3.0, 2.5), "three": Found(2.0, 1.0, 3.0)}
    _, remark = remark_claims(reports)
    assert remark.found == "in 1 of 3"
    assert re.findall("“(.+?)”", remark.why) == ["one", "three"]


def correlated_normal(n, seed):
    """Standard normal numbers, each like the last: as hours are."""
    rng = np.random.default_rng(seed)
    values = np.zeros(n)
    for i in range(1, n):
        values[i] = 0.9 * values[i - 1] + np.sqrt(1 - 0.9**2) * rng.standard_normal()
    return values


@pytest.mark.parametrize("seed", range(3))
def test_a_log_normal_series_has_a_normal_logarithm(seed):
    claims = data_claims("here", np.exp(correlated_normal(30_000, seed)))
    assert [claim.holds for claim in claims] == [True, True, True]


@pytest.mark.parametrize(("sign", "tail"), [(-1, "low"), (1, "high")])
def test_a_logarithm_with_a_skewness_of_two_fifths_is_not_normal(sign, tail):
    """The sum of a normal and an exponential number, by whose share the skewness is 2 share³ = 0.4."""
    share = 0.2 ** (1 / 3)
    normal, drawn = correlated_normal(30_000, 3), np.random.default_rng(0).exponential(size=30_000) - 1
    logs = np.sqrt(1 - share**2) * normal + sign * share * drawn
    claim = data_claims("here", np.exp(logs))[2]
    assert not claim.holds
    assert f"the tail of {tail} values is the longer one" in claim.why
    assert float(re.search(r"skewness is ([\d.]+) standard", claim.why)[1]) > 5


def timed_scores(cgp, sgp, spread):
    found = []
    for name, seconds in (("CGP", cgp), ("FITC", sgp)):
        for size, took in zip(WEEKS, seconds, strict=True):
            found.append(Score(f"{name} {in_weeks(size)}", 1.0, 1.0, 1.0, 1.0, 0.95, took, spread))
    return found


@pytest.mark.parametrize(
    ("spread", "words"), [(0.05, "0.07 s is noise, as.*0.10 s"), (0.01, "0.07 s is more than")]
)
def test_a_step_back_of_seconds_is_noise_only_if_repeated_predictions_vary_as_much(spread, words):
    scores = timed_scores([0.10, 0.23, 0.4, 0.8, 2.6], [0.16, 0.22, 0.65, 1.64, 8.1], spread)
    claim = runtime_claims(scores)[2]
    assert not claim.holds
    assert claim.why.startswith("not from 1 to 2 weeks: ")
    assert re.search(words, claim.why)


@pytest.mark.parametrize(("slow", "holds"), [(4.4, True), (3.6, False)])
def test_four_times_the_seconds_for_twice_the_data_is_the_square(slow, holds):
    assert scaling_claim({12: 0.3, 25: 1.0, 50: slow}).holds == holds


@pytest.mark.parametrize(("fit", "holds"), [(60.0, True), (80.0, False)])
def test_the_forecaster_is_timed_with_its_fit_and_updates(fit, holds):
    """A hundred days, at a tenth of seven seconds each."""
    work = Work(fit=fit, updates=4.0, predictions=1.0, days=100)
    own = Score("own", 1.0, 1.0, 1.0, 1.0, 0.95, work.a_day, work=work)
    gp = Score("GP", 1.0, 1.0, 1.0, 1.0, 0.95, 7.0)
    claim = forecaster_claims("hornsgatan", own, gp, None, 12.0)[2]
    assert claim.holds == holds
    assert claim.found.startswith(
        f"{(fit + 5) / 100:.3f} s (fit {fit:.1f} s, updates 4.0 s, predictions 1.0 s; 100 days)"
    )


def test_claims_that_fail_say_where_and_lose_no_report():
    """Numbers that are all on the wrong side: every reason names what it is about."""
    assert "rounding errors" in posterior_claim(1.0).why
    assert "ends elsewhere" in recursion_claim({50: 0.1}).why
    for claim in segment_claims([(50, 100, 1.0, 1.0, 1.0), (100, 50, 2.0, 2.0, 2.0)]):
        assert "not from 50 to 100" in claim.why
        assert "50 segments has itself a standard error of 10.0% of it" in claim.why
    # The SGP is better than every CGP, which costs more with more segments and is as fast.
    rows = [("GP", 0.0, 0.0, 0.0, 1.0, 1.0)]
    for number, name in enumerate(SCHEMES):
        rows += [(f"CGP, {count} {name}", 2.0 + number - count / 100, 1e-9, 0.0, 9.0, 2.0) for count in (4, 16)]
    rows.append(("FITC, 64 inducing", 1e-6, 1.0, 0.0, 1.0, 1.0))
    failed = {claim.text: claim.why for claim in field_claims(rows) if not claim.holds}
    for text in (
        "the CGP is most similar to the GP",
        "from 4 to 16 segments the additional error increases",
        "from 4 to 16 segments the computation time falls",
        "the SGP's additional error is notably higher",
    ):
        assert all(name in failed[text] for name in SCHEMES)
    assert failed["the SGP's mean differs notably from the GP's"].startswith("64 inducing points")


def test_the_report_says_what_its_methods_are():
    text = markdown([Experiment("x", "X", "set")], "command", 2).split("## X")[0]
    for name in ("GP", "CGP", "SGP", "FITC", "conditional"):
        assert f"- **{name}**" in text
