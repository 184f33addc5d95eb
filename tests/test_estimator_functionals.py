"""Functionals in the estimator: predicted by every method, and observed."""

import functional_oracles as oracle
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from compositegp import Committee, CompositeGPRegressor, CompositeSum, Inducing, Nearest
from compositegp import functionals as F

SMOOTH, ROUGH, NOISE = 2.0 * RBF(1.5), 0.5 * Matern(1.0, nu=2.5), 0.05
KERNEL = SMOOTH + ROUGH + WhiteKernel(NOISE)
PARTS = {"k1__k1": SMOOTH, "k1__k2": ROUGH}


def field(n, rng, d=2):
    X = rng.uniform(0, 6, size=(n, d))
    return X, np.sin(X).sum(axis=1) + 0.2 * rng.normal(size=n)


def fitted(X, y, prediction="nearest", kernel=KERNEL, **options):
    return CompositeGPRegressor(kernel, learning=None, prediction=prediction, **options).fit(X, y)


def kinds(Z):
    sets = [Z[:3], Z[2:6]]
    ours = F.join(
        [
            F.at(Z[:1]),
            F.derivative(Z[:2], 1),
            F.average(sets),
            F.combine(Z[:2], [1.0, -1.0]),
            F.part(Z[:1], "k1__k2"),
        ]
    )
    theirs = [
        oracle.at(Z[0]),
        *(oracle.slope(z, 1) for z in Z[:2]),
        *(oracle.mean_over(own) for own in sets),
        oracle.combined([oracle.at(Z[0]), oracle.at(Z[1])], [1.0, -1.0]),
        oracle.at(Z[0], "k1__k2"),
    ]
    noise = NOISE * np.array([1, 0, 0, 1 / 3, 1 / 4, 2, 0])
    return ours, theirs, noise


def test_exact_model_equals_dense_algebra(rng, device):
    X, y = field(40, rng)
    ours, theirs, noise = kinds(rng.uniform(0, 6, size=(6, 2)))
    mean, covariance = oracle.exact(PARTS, [oracle.at(x) for x in X], y, NOISE, theirs)
    model = fitted(X, y)
    latent = model.predict_distribution(ours, latent=True)
    np.testing.assert_allclose(latent.mean, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(latent.variance, np.diagonal(covariance), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        model.predict(ours, return_std=True)[1] ** 2, np.diagonal(covariance) + noise, rtol=1e-4
    )
    np.testing.assert_allclose(
        model.predict(ours, return_cov=True, latent=True)[1], covariance, rtol=1e-3, atol=1e-5
    )


def test_points_as_functionals_are_points(rng):
    X, y = field(300, rng)
    model = CompositeGPRegressor(KERNEL, prediction=Nearest(64), learning=None).fit(X, y)
    for options in ({}, {"latent": True}, {"joint": True}):
        ours, theirs = (
            model.predict_distribution(F.at(X[:5]), **options),
            model.predict_distribution(X[:5], **options),
        )
        np.testing.assert_array_equal(ours.mean, theirs.mean)
        np.testing.assert_array_equal(ours.std, theirs.std)


@pytest.mark.parametrize(
    "prediction",
    [
        Nearest(64, group_size=8),
        Nearest(64, calibration=None),
        CompositeSum(group_size=64),
        Inducing(30),
        Inducing(30, "pitc"),
        Committee("rbcm"),
    ],
    ids=str,
)
def test_every_method_predicts_slopes_of_its_own_mean(prediction, rng, device):
    """Under a method the derivative of the prediction is the prediction of the derivative, or close to it."""
    X, y = field(400, rng)
    model = fitted(X, y, prediction, segment_size=100)
    Z, h = rng.uniform(1, 5, size=(7, 2)), 1e-4
    found = model.predict_distribution(F.derivative(Z, 0), latent=True)
    ends = [model.predict(Z + sign * np.array([h, 0])) for sign in (1, -1)]
    exact = fitted(X, y, Nearest(400)).predict(F.derivative(Z, 0))
    assert np.isfinite(found.std).all()
    if isinstance(prediction, CompositeSum | Committee):  # z is another latent: the terms say something else of it
        assert np.abs(found.mean - exact).mean() < 0.7 * np.abs(exact).mean()
    else:
        np.testing.assert_allclose(found.mean, (ends[0] - ends[1]) / (2 * h), rtol=1e-3, atol=1e-3)


def test_parts_add_up_in_nearest(rng):
    """Each part is predicted from the neighbors of its point, so that parts sum to what the point alone has."""
    X, y = field(600, rng)
    model = fitted(X, y, Nearest(50))
    Z = rng.uniform(0, 6, size=(40, 2))
    names = [*F.part_names(KERNEL), "mean"]
    alone = [model.predict(F.part(Z, name)) for name in names]
    np.testing.assert_allclose(np.sum(alone, axis=0), model.predict(Z), rtol=1e-10, atol=1e-10)
    together = model.predict([F.part(Z, name) for name in names]).reshape(len(names), -1)
    np.testing.assert_allclose(together, alone, rtol=1e-10, atol=1e-10)


def test_parts_add_up_in_composites(rng):
    X, y = field(300, rng)
    Z = rng.uniform(0, 6, size=(20, 2))
    names = [*F.part_names(KERNEL), "mean"]
    for prediction in (CompositeSum(group_size=7), Inducing(40)):
        model = fitted(X, y, prediction, segment_size=60)
        found = model.predict([F.at(Z), *(F.part(Z, name) for name in names)]).reshape(-1, 20)
        np.testing.assert_allclose(found[1:].sum(axis=0), found[0], rtol=1e-6, atol=1e-6)


def test_the_offset_belongs_to_the_mean(rng):
    """Without a kernel the target's mean is taken off first: values and averages have it, slopes and parts do not."""
    X, y = field(60, rng)
    low, high = (
        CompositeGPRegressor(Matern(2.0, nu=2.5) + WhiteKernel(0.1), mean=mean, learning=None)
        for mean in (0.0, 100.0)
    )
    automatic = CompositeGPRegressor(learning=None).fit(X, y + 1000)
    plain = CompositeGPRegressor(learning=None).fit(X, y)
    low.fit(X, y), high.fit(X, y + 100)
    asked = [
        F.at(X[:2]),
        F.average([X[:5]]),
        F.derivative(X[:2], 0),
        F.combine(X[:2], [1, -1]),
        F.part(X[:2], "kernel"),
    ]
    shares = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(high.predict(asked), low.predict(asked) + 100 * shares, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(automatic.predict(asked), plain.predict(asked) + 1000 * shares, rtol=1e-6, atol=1e-6)
    parts = automatic.predict(F.part(X[:2], "kernel")) + automatic.predict(F.part(X[:2], "mean"))
    np.testing.assert_allclose(parts, automatic.predict(X[:2]), rtol=1e-10)


def test_uncertain_hyperparameters(rng):
    """The mixture over θ is linear in f too."""
    X, y = field(30, rng, d=1)
    model = CompositeGPRegressor(1.0 * RBF(1.0) + WhiteKernel(0.1)).fit(X, y)
    Z, h = np.array([[1.0], [2.0]]), 1e-4
    slope = (model.predict(Z + h) - model.predict(Z - h)) / (2 * h)
    np.testing.assert_allclose(model.predict(F.derivative(Z, 0)), slope, rtol=1e-5, atol=1e-6)
    mean, covariance = model.predict(Z, return_cov=True)
    average = model.predict_distribution(F.average([Z]))
    np.testing.assert_allclose(average.mean, [mean.mean()], rtol=1e-9)
    np.testing.assert_allclose(average.variance, [covariance.mean()], rtol=1e-6)


def test_wide_functionals_have_the_union_of_neighborhoods(rng):
    """The average over a region is the exact GP given all the observations that are near one of its points."""
    X, y = field(500, rng)
    grid = np.stack(np.meshgrid([1.0, 3.0, 5.0], [1.0, 3.0, 5.0]), -1).reshape(-1, 2)
    model = fitted(X, y, Nearest(20, calibration=None))
    found = model.predict_distribution(F.average([grid, grid[:2]]), latent=True)
    distances = np.sqrt(((grid[:, None] - X) ** 2).sum(axis=2))  # one length scale for both columns
    for number, points in enumerate([grid, grid[:2]]):
        near = np.unique(np.argsort(distances[: len(points)], axis=1)[:, :20])
        mean, covariance = oracle.exact(
            PARTS, [oracle.at(x) for x in X[near]], y[near], NOISE, [oracle.mean_over(points)]
        )
        np.testing.assert_allclose(found.mean[number], mean[0], rtol=1e-8)
        np.testing.assert_allclose(found.variance[number], covariance[0, 0], rtol=1e-5)


def test_narrow_functionals_have_the_neighborhood_of_their_center(rng):
    """A small box has the neighbors of its center: the same prediction as in one group with it."""
    X, y = field(500, rng)
    model = fitted(X, y, Nearest(60, calibration=None))
    points, weights = F.box([2.9, 2.9], [3.1, 3.1], size=2)
    found = model.predict_distribution(F.average([points], [weights]), latent=True)
    near = np.argsort(((X - 3.0) ** 2).sum(axis=1))[:60]
    mean, covariance = oracle.exact(
        PARTS, [oracle.at(x) for x in X[near]], y[near], NOISE, [oracle.mean_over(points, weights)]
    )
    np.testing.assert_allclose(found.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(found.variance, np.diagonal(covariance), rtol=1e-5)


def test_the_limit_of_wide_functionals(rng, monkeypatch):
    X, y = field(500, rng)
    model = fitted(X, y, Nearest(100))
    region = F.average([rng.uniform(0, 6, size=(30, 2))])
    full = model.predict_distribution(region)
    monkeypatch.setattr("compositegp.posteriors.local_kriging.WIDE_LIMIT", 300)
    with pytest.warns(UserWarning, match=r"predicted from the \d+ observations nearest to each of them"):
        fewer = model.predict_distribution(region)
    assert full.std[0] < fewer.std[0] < 3 * full.std[0]  # fewer observations, and an error bar that says so
    monkeypatch.setattr("compositegp.posteriors.local_kriging.WIDE_LIMIT", 30)
    with pytest.raises(ValueError, match="but the limit is 30. Give it fewer points"):
        model.predict_distribution(region)


def test_totals_have_honest_error_bars(rng):
    """The standard error of an average accounts for correlation: against draws, and unlike a sum of marginals."""
    X, y = field(900, rng)
    model = fitted(X, y, Nearest(600, calibration=None))  # so many that it hardly matters whose neighbors they are
    days = [np.column_stack([np.full(12, 2.0), np.linspace(a, a + 1, 12)]) for a in (1.0, 4.0)]
    found = model.predict_distribution(F.average(days), latent=True)
    draws = model.sample_y(np.concatenate(days), 40_000, latent=True).reshape(2, 12, -1).mean(axis=1)
    np.testing.assert_allclose(found.std, draws.std(axis=1), rtol=0.03)
    np.testing.assert_allclose(found.mean, draws.mean(axis=1), rtol=0, atol=5 * found.std.max() / 200)
    alone = model.predict_distribution(days[0], latent=True).std
    assert np.sqrt((alone**2).sum()) / 12 < 0.6 * found.std[0]


def test_calibrated_models(rng):
    """A functional is normal, with the calibrated standard deviation of its points over the model's own."""
    X = rng.uniform(0, 40, size=(1500, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_t(3, size=1500) * (1 + 3 * (X[:, 0] > 20))
    kernel = 1.0 * RBF(1.0) + WhiteKernel(0.05)
    model, plain = (fitted(X, y, Nearest(64, calibration=way), kernel) for way in ("local", None))
    assert not model.calibration_.is_gaussian
    Z = np.linspace(1, 39, 9)[:, None]
    ratio = model.predict_distribution(Z).std / plain.predict_distribution(Z).std
    assert ratio.max() > 1.5 * ratio.min()
    for asked in (F.derivative(Z, 0), F.part(Z, "k1"), F.combine(Z, 2 * np.eye(9))):
        for joint in (False, True):
            found = model.predict_distribution(asked, joint=joint, latent=True)
            own = plain.predict_distribution(asked, joint=joint, latent=True)
            np.testing.assert_allclose(found.std / own.std, ratio, rtol=1e-6)
            np.testing.assert_allclose(found.mean, own.mean, rtol=1e-12)


def test_honest_variance_and_analysis(rng):
    X, y = field(120, rng)
    model = fitted(X, y, CompositeSum(), segment_size=40, conditioning_size=0)
    asked = F.join([F.derivative(X[:2], 0), F.average([X[:6]])])
    report = model.analyze(asked)
    claimed = model.predict_distribution(asked, latent=True).variance
    honest = model.predict_distribution(asked, latent=True, variance="honest").variance
    np.testing.assert_allclose(report.claimed_variance, claimed, rtol=1e-8)
    np.testing.assert_allclose(report.actual_mse, honest, rtol=1e-8)
    exact = fitted(X, y).predict_distribution(asked, latent=True).variance
    assert (honest >= exact - 1e-9).all()


def test_transformed_targets(rng):
    """Derivatives and parts are those of the logarithm; a sum of a target is not one of its logarithm."""
    X, y = field(80, rng)
    model = CompositeGPRegressor(KERNEL, target_transform="log", learning=None).fit(X, np.exp(y))
    plain = fitted(X, y)
    for asked in (F.derivative(X[:3], 0), F.part(X[:3], "k1__k1")):
        np.testing.assert_allclose(model.predict(asked), plain.predict(asked), rtol=1e-9)
    with pytest.raises(ValueError, match="sum, average or multiple of a target is not that of its transform"):
        model.predict(F.average([X[:3]]))
    with pytest.raises(ValueError, match="multiple of a target"):
        model.predict(F.combine(X[:1], [2.0]))
    with pytest.raises(ValueError, match="values at points are in its unit"):
        model.predict([F.at(X[:1]), F.derivative(X[:1], 0)])
    np.testing.assert_allclose(model.predict([F.at(X[:1]), F.at(X[1:3])]), model.predict(X[:3]), rtol=1e-9)
    with pytest.raises(ValueError, match="target_transform is for observed values"):
        model.fit(F.average([X[:3], X[3:6]]), [1.0, 2.0])


def test_several_outputs(rng):
    X, y = field(50, rng)
    both = fitted(X, np.column_stack([y, 2 * y + 1]))
    asked = F.join([F.derivative(X[:2], 0), F.average([X[:4]])])
    found = both.predict_distribution(asked)
    np.testing.assert_allclose(found.mean[:, 0], fitted(X, y).predict(asked), rtol=1e-9)
    np.testing.assert_allclose(found.mean[:, 1], fitted(X, 2 * y + 1).predict(asked), rtol=1e-9)


def test_data_frames(rng):
    pd = pytest.importorskip("pandas")
    X, y = field(40, rng)
    table = pd.DataFrame(X, columns=["east", "north"])
    model = fitted(table, y)
    np.testing.assert_array_equal(
        model.predict(F.derivative(table, "north")), fitted(X, y).predict(F.derivative(X, 1))
    )
    with pytest.raises(ValueError, match="fitted to east, north"):
        model.predict(F.derivative(table[["north", "east"]], "north"))
    with pytest.raises(ValueError, match=r"points with 1 column\(s\), but CompositeGPRegressor was fitted to 2"):
        model.predict(F.derivative(X[:, :1], 0))


class TestObserved:
    """Fits to functionals: block averages and slopes."""

    @pytest.fixture
    def observed(self, rng):
        X, _ = field(150, rng)
        sets = [X[start : start + 3] for start in range(0, 90, 3)]
        functionals = F.join([F.average(sets), F.derivative(X[90:120], 0), F.at(X[120:])])
        theirs = (
            [oracle.mean_over(own) for own in sets]
            + [oracle.slope(x, 0) for x in X[90:120]]
            + [oracle.at(x) for x in X[120:]]
        )
        truth = oracle.mean_of(lambda X: np.sin(X).sum(axis=1), theirs)
        given = np.array([0.01] * 30 + [0.02] * 30 + [0.0] * 30)
        noise = given + NOISE * np.array([1 / 3] * 30 + [0.0] * 30 + [1.0] * 30)
        return functionals, truth, given, theirs, noise

    def test_exact_fit_equals_dense_algebra(self, observed, rng, device):
        functionals, y, given, theirs, noise = observed
        model = CompositeGPRegressor(KERNEL, learning=None).fit(functionals, y, noise_variance=given)
        asked, others, _ = kinds(rng.uniform(0, 6, size=(6, 2)))
        mean, covariance = oracle.exact(PARTS, theirs, y, noise, others)
        found = model.predict_distribution(asked, latent=True)
        np.testing.assert_allclose(found.mean, mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.variance, np.diagonal(covariance), rtol=1e-3, atol=1e-6)
        assert model.kernel_ == KERNEL
        Z = rng.uniform(0, 6, size=(4, 2))
        mean, _ = oracle.exact(PARTS, theirs, y, noise, [oracle.at(z) for z in Z])
        np.testing.assert_allclose(model.predict(Z), mean, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("prediction", [Nearest(30), CompositeSum(), Inducing(20), Committee("bcm")], ids=str)
    def test_every_method_takes_them(self, observed, prediction, rng):
        functionals, y, given, *_ = observed
        Z = rng.uniform(0, 6, size=(8, 2))
        options = {"segment_size": 30, "conditioning_size": 30}
        model = CompositeGPRegressor(KERNEL, learning=None, prediction=prediction, **options)
        model.fit(functionals, y, noise_variance=given)
        exact = CompositeGPRegressor(KERNEL, learning=None).fit(functionals, y, noise_variance=given)
        for asked in (Z, F.derivative(Z, 1)):
            ours, theirs = model.predict(asked), exact.predict(asked)
            assert np.abs(ours - theirs).mean() < np.abs(theirs).mean()

    def test_learning_files_and_streams(self, observed, tmp_path, rng):
        functionals, y, given, *_ = observed
        Z = rng.uniform(0, 6, size=(5, 2))
        kernel = 1.0 * RBF(3.0) + WhiteKernel(NOISE, "fixed")
        model = CompositeGPRegressor(kernel, prediction=Nearest(theta_uncertainty=False))
        model.fit(functionals[:60], y[:60], noise_variance=given[:60])
        assert 0.7 < model.kernel_.k1.k2.length_scale < 3  # of sin(x) + sin(y)
        np.testing.assert_allclose(model.predict(Z), np.sin(Z).sum(axis=1), rtol=0, atol=0.35)
        model.save(tmp_path / "model.cgp")
        again = CompositeGPRegressor.load(tmp_path / "model.cgp")
        np.testing.assert_array_equal(again.predict(F.derivative(Z, 0)), model.predict(F.derivative(Z, 0)))
        fixed = CompositeGPRegressor(KERNEL, learning=None, conditioning_size=0)
        whole = fixed.fit(functionals, y, noise_variance=given).predict(Z)
        stream = CompositeGPRegressor(KERNEL, learning=None, conditioning_size=0)
        for part in (slice(0, 20), slice(20, 60)):
            stream.partial_fit(functionals[part], y[part], noise_variance=given[part])
        stream.partial_fit(functionals[60:].points, y[60:])
        np.testing.assert_allclose(stream.predict(Z), whole, rtol=1e-9, atol=1e-9)

    def test_without_a_kernel(self, observed):
        functionals, y, *_ = observed
        model = CompositeGPRegressor().fit(functionals[:24], 5 + y[:24])
        assert model.kernel_.k1.k2.nu == 1.5
        Z = functionals[:24].points
        assert np.corrcoef(model.predict(Z), np.sin(Z).sum(axis=1))[0, 1] > 0.9
        assert model.predict(Z).mean() == pytest.approx(5, abs=1.0)


@pytest.mark.parametrize(
    "prediction", [Nearest(60, group_size=1, calibration=None), CompositeSum(group_size=32)], ids=str
)
def test_equal_in_partitions(prediction, rng):
    """A model of data in Dask partitions says the same of functionals as one of the data in memory."""
    da = pytest.importorskip("dask.array")
    from compositegp.distributed import DistributedGPRegressor

    X, y = field(600, rng)
    X, y = X[np.argsort(X[:, 0])], y[np.argsort(X[:, 0])]
    Z = rng.uniform(1, 5, size=(5, 2))
    asked = [F.derivative(Z, 0), F.part(Z, "k1__k1"), F.average([Z, Z[:2]]), F.combine(Z[:2], [1, -1]), F.at(Z)]
    options = {"learning": None, "prediction": prediction, "segment_size": 50, "conditioning_size": 0}
    apart = DistributedGPRegressor(KERNEL, **options).fit(da.from_array(X, (150, 2)), da.from_array(y, 150))
    groups = np.repeat(np.arange(4), 150) if isinstance(prediction, Nearest) else apart_segments(apart)
    together = CompositeGPRegressor(KERNEL, **options).fit(X, y, groups=groups)
    for latent in (False, True):
        ours, theirs = (model.predict_distribution(asked, latent=latent) for model in (apart, together))
        np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(ours.std, theirs.std, rtol=1e-5)
    np.testing.assert_array_equal(apart.predict(F.at(Z)), apart.predict(Z))


def apart_segments(model):
    """Labels of the segments that a distributed model has made."""
    labels, start = [], 0
    for part in model._fitted().parts:
        found = part.compute()
        own = np.empty(len(found.X), dtype=int)
        for number, segment in enumerate(found.segments):
            own[segment] = start + number
        labels, start = [*labels, own], start + len(found.segments)
    return np.concatenate(labels)


class TestImportances:
    """Average slopes by column, against functions whose slopes are known."""

    @pytest.mark.parametrize("n", [150, 1500])
    def test_slopes_of_a_known_function(self, n, rng):
        X = rng.uniform(-1, 1, size=(n, 3)) * [1.0, 10.0, 1.0]
        y = 4 * X[:, 0] + np.sin(X[:, 1] / 3) + 0.05 * rng.normal(size=n)
        kernel = 9.0 * RBF([2.0, 3.0, 50.0]) + WhiteKernel(0.0025)
        found = fitted(X, y, Nearest(100), kernel).importances()
        slopes = np.array([4.0, np.abs(np.cos(X[:, 1] / 3) / 3).mean(), 0.0])
        assert (np.abs(found.slopes - slopes) < 4 * found.standard_errors / found.spreads + 0.05).all()
        assert (found.standard_errors < 0.1).all()
        np.testing.assert_allclose(found.effects, found.slopes * X.std(axis=0))
        np.testing.assert_allclose(found.length_scales, [2.0, 3.0, 50.0])
        np.testing.assert_array_equal(found.order, [0, 1, 2])
        assert found.is_derivative
        assert "column 2" in repr(found).splitlines()[-1]
        assert found.words == ["bends slowly over the data", "bends several times over the data", "hardly matters"]

    def test_error_bars_against_draws(self, rng):
        """Of a model with few data: the spread of average slopes among draws of f, by differences."""
        X, y = field(25, rng, d=1)
        model = fitted(X, y, kernel=1.0 * RBF(0.7) + WhiteKernel(0.3))
        found = model.importances()
        h = 0.05
        draws = model.sample_y(np.concatenate([X + h, X - h]), 4000, latent=True).reshape(2, 25, -1)
        slopes = (draws[0] - draws[1]) / (2 * h)
        signs = np.sign(slopes.mean(axis=1))
        averages = (signs[:, None] * slopes).mean(axis=0)
        np.testing.assert_allclose(found.slopes, [averages.mean()], rtol=0.05)
        np.testing.assert_allclose(found.standard_errors / found.spreads, [averages.std()], rtol=0.1)

    @pytest.mark.parametrize("seed", [None, 1.5, -1])
    def test_a_seed_that_is_none_is_refused(self, rng, seed):
        X, y = field(25, rng)
        with pytest.raises(ValueError, match="random_state must be a whole number of at least 0"):
            fitted(X, y, kernel=RBF() + WhiteKernel(0.1)).importances(random_state=seed)

    def test_rough_kernels_have_differences(self, rng):
        X, y = field(200, rng)
        found = fitted(X, y, kernel=1.0 * Matern([1.0, 1.0], nu=0.5) + WhiteKernel(0.05)).importances()
        smooth = fitted(X, y).importances()
        assert not found.is_derivative
        assert "difference" in repr(found)
        np.testing.assert_allclose(found.effects, smooth.effects, rtol=0.5)

    def test_constant_columns_and_several_outputs(self, rng):
        pd = pytest.importorskip("pandas")
        X, y = field(80, rng)
        table = pd.DataFrame({"a": X[:, 0], "flat": 1.0, "b": X[:, 1]})
        found = fitted(table, np.column_stack([y, -y])).importances()
        assert found.names == ["a", "flat", "b"]
        assert found.effects.shape == (3, 2)
        np.testing.assert_allclose(found.effects[:, 1], found.effects[:, 0], rtol=1e-9)
        assert (found.effects[1] == 0).all()


def test_streams_watch_functionals(rng, tmp_path):
    """A stream that keeps only a belief about functionals says what a fit to all the data says."""
    X, y = field(120, rng)
    asked = F.join([F.derivative(X[:2], 0), F.average([X[:5]]), F.at(X[3:5]), F.part(X[:1], "k1__k1")])
    options = {"learning": None, "conditioning_size": 0}
    stream = CompositeGPRegressor(KERNEL, prediction=CompositeSum(watch=asked), **options)
    for part in np.split(np.arange(120), 3):
        stream.partial_fit(X[part], y[part])
    labels = np.repeat(np.arange(3), 40)
    whole = CompositeGPRegressor(KERNEL, prediction=CompositeSum(group_size=99), **options).fit(X, y, groups=labels)
    for latent in (False, True):
        ours, theirs = (model.predict_distribution(asked, latent=latent) for model in (stream, whole))
        np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(ours.std, theirs.std, rtol=1e-5)
    np.testing.assert_allclose(stream.predict(X[3:5]), stream.predict(asked)[3:5])
    np.testing.assert_allclose(stream.predict(F.average([X[:5]])), stream.predict(asked)[2:3])
    with pytest.raises(ValueError, match="not among those in watch"):
        stream.predict(F.derivative(X[5:6], 0))
    stream.save(tmp_path / "stream.cgp")
    again = CompositeGPRegressor.load(tmp_path / "stream.cgp")
    np.testing.assert_array_equal(again.predict(asked), stream.predict(asked))
    np.testing.assert_allclose(
        again.partial_fit(X[:7], y[:7]).predict(asked), stream.partial_fit(X[:7], y[:7]).predict(asked), rtol=1e-9
    )


@pytest.mark.parametrize("prediction", [Nearest(40), Nearest()])
def test_calibrated_predictions_go_on_when_functionals_are_observed_later(rng, prediction):
    X = rng.uniform(0, 10, size=(300, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_t(2.5, size=300)
    later, Z = rng.uniform(0, 10, size=(6, 2)), rng.uniform(0, 10, size=(40, 2))
    kernel = 1.0 * Matern(2.0, nu=1.5) + WhiteKernel(0.01)
    points, functionals = (
        fitted(X, y, prediction, kernel, mean=None).partial_fit(one, np.sin(later[:, 0]))
        for one in (later, F.at(later))
    )
    assert not points.calibration_.is_gaussian
    for asked in (Z, F.average([Z[:3], Z[3:7]])):
        for one, other in zip(
            *(model.predict(asked, return_std=True) for model in (points, functionals)), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-9)
