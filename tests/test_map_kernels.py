"""Kernels for maps: on the sphere, and with a long axis of any direction."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic, WhiteKernel

from compositegp import (
    Composite,
    CompositeGPRegressor,
    MaternOnSphere,
    OnColumns,
    OnSphere,
    RotatedMatern,
    RotatedMaternOnSphere,
    nearest,
    segment,
    simulate,
)
from compositegp.kernels import (
    DataScale,
    diagonal,
    gram,
    in_length_scales,
    largest_covariance,
    linearize,
    metric,
    noise_variance,
    typical_values,
)
from compositegp.spatial.families import map_kernels

RADIUS = 6371.0088
INSIDE = [Matern(800.0, nu=0.5), Matern(800.0, nu=1.5), RBF(500.0), RationalQuadratic(700.0, 1.3)]


def check_gradient(kernel, X):
    """The gradient of a kernel against finite differences."""
    K, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_allclose(K, kernel(X), rtol=1e-12)
    assert gradient.shape[-1] == len(kernel.theta)
    for i, step in enumerate(1e-6 * np.eye(len(kernel.theta))):
        up, down = (kernel.clone_with_theta(kernel.theta + s)(X) for s in (step, -step))
        np.testing.assert_allclose(gradient[..., i], (up - down) / 2e-6, rtol=0, atol=1e-8)


def on_globe(rng, n):
    """Points spread evenly over the globe."""
    return np.column_stack([rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))])


def great_circle(X, Y):
    """Angles between points by the haversine formula: shape (n, m)."""
    (lon, lat), (lon2, lat2) = np.radians(X).T[:, :, None], np.radians(Y).T[:, None, :]
    h = np.sin((lat - lat2) / 2) ** 2 + np.cos(lat) * np.cos(lat2) * np.sin((lon - lon2) / 2) ** 2
    return 2 * np.arcsin(np.sqrt(np.minimum(h, 1.0)))


def turned(X, rotation):
    """Longitudes and latitudes after a rotation of the sphere."""
    lon, lat = np.radians(X).T
    points = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    x, y, z = rotation.apply(points).T
    return np.degrees(np.column_stack([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))]))


class TestOnSphere:
    @pytest.mark.parametrize("inside", INSIDE, ids=str)
    def test_is_the_kernel_of_the_chord_in_kilometers(self, inside, rng):
        X, Y = on_globe(rng, 30), on_globe(rng, 20)
        chords = 2 * RADIUS * np.sin(great_circle(X, Y) / 2)
        expected = inside(chords.reshape(-1, 1), [[0.0]]).reshape(chords.shape)
        np.testing.assert_allclose(OnSphere(inside)(X, Y), expected, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(gram(OnSphere(inside), X, Y), expected, rtol=1e-9, atol=1e-13)

    @pytest.mark.parametrize("inside", INSIDE, ids=str)
    def test_is_positive_definite_over_the_whole_globe(self, inside, rng):
        X = np.concatenate([on_globe(rng, 300), [[0, 90], [77, 90], [180, 0], [-180, 0], [12, -90]]])
        values = np.linalg.eigvalsh(OnSphere(inside)(X))
        assert values[0] > -1e-12 * values[-1]

    @pytest.mark.parametrize("inside", INSIDE, ids=str)
    def test_does_not_change_when_the_sphere_is_turned(self, inside, rng):
        X = on_globe(rng, 40)
        rotation = Rotation.random(rng=1)
        np.testing.assert_allclose(
            OnSphere(inside)(X), OnSphere(inside)(turned(X, rotation)), rtol=1e-8, atol=1e-12
        )

    def test_poles_and_the_date_line_are_nothing_special(self):
        kernel = OnSphere(RBF(500.0))
        np.testing.assert_allclose(kernel([[0.0, 90.0]], [[123.0, 90.0]]), 1.0, rtol=1e-14)
        np.testing.assert_allclose(kernel([[180.0, 10.0]], [[-180.0, 10.0]]), 1.0, rtol=1e-14)
        np.testing.assert_allclose(kernel([[350.0, 10.0]], [[3.0, 12.0]]), kernel([[-10.0, 10.0]], [[3.0, 12.0]]))

    def test_is_a_scikit_learn_kernel(self, rng):
        X = on_globe(rng, 40)
        kernel = 1.0 * OnSphere(Matern(2000.0, nu=1.5)) + WhiteKernel(0.1, "fixed")
        y = np.linalg.cholesky(kernel(X)) @ rng.normal(size=40)
        model = GaussianProcessRegressor(kernel, random_state=0).fit(X, y)
        assert model.log_marginal_likelihood_value_ > model.log_marginal_likelihood(kernel.theta)
        assert clone(kernel) == kernel
        assert OnSphere(RBF(3.0)) != OnSphere(RBF(4.0))
        assert OnSphere(RBF(3.0)) != OnSphere(RBF(3.0), 1.0)

    def test_gradient_is_that_of_scikit_learn(self, rng):
        X = on_globe(rng, 12)
        kernel = 2.0 * OnSphere(Matern(2000.0, nu=2.5)) + WhiteKernel(0.1)
        K, gradient = kernel(X, eval_gradient=True)
        found = linearize(kernel, X)
        np.testing.assert_allclose(found.value, K, rtol=1e-10)
        np.testing.assert_allclose(found.jacobian(), np.moveaxis(gradient, -1, 0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(noise_variance(kernel, X), 0.1)
        np.testing.assert_allclose(diagonal(kernel, X, noise=False), 2.0)

    def test_nearness_follows_the_sphere(self, rng):
        """Distances in the length scales of sums and products with time are chords over the length scale."""
        X = np.column_stack([on_globe(rng, 25), rng.uniform(0, 9, 25)])
        chords = 2 * RADIUS * np.sin(great_circle(X[:, :2], X[:, :2]) / 2)
        space = OnColumns(OnSphere(Matern(500.0)), [0, 1])
        for kernel, times in ((2.0 * space + WhiteKernel(), np.inf), (space * OnColumns(RBF(3.0), 2), 3.0)):
            places = in_length_scales(kernel, X)
            squares = ((places[:, None] - places[None]) ** 2).sum(-1)
            hours = (X[:, None, 2] - X[None, :, 2]) / times
            np.testing.assert_allclose(squares, (chords / 500) ** 2 + hours**2, rtol=1e-9, atol=1e-9)

    def test_neighbors_and_segments_cross_the_date_line(self, rng):
        """Predictions do not change when the sphere is turned so that the data lie across the date line."""
        X = np.column_stack([rng.uniform(-12, 12, 400), rng.uniform(-12, 12, 400)])
        Z = np.column_stack([rng.uniform(-2, 2, 30), rng.uniform(-12, 12, 30)])
        y = np.sin(X[:, 0] / 3) + np.cos(X[:, 1] / 4)
        kernel = OnSphere(Matern(600.0, nu=1.5)) + WhiteKernel(0.01)
        quarter = Rotation.from_euler("z", 180, degrees=True)
        here = nearest(kernel, X, y, Z, n_neighbors=60)
        there = nearest(kernel, turned(X, quarter), y, turned(Z, quarter), n_neighbors=60)
        np.testing.assert_allclose(there.mean, here.mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(there.variance, here.variance, rtol=0, atol=1e-8)
        for part in segment(turned(X, quarter), 50, kernel=kernel):
            angles = great_circle(turned(X, quarter)[part], turned(X, quarter)[part])
            assert np.degrees(angles).max() < 20  # none is split between the two ends of the map

    def test_length_scale_is_learned_in_kilometers(self):
        rng = np.random.default_rng(3)
        X = np.column_stack([rng.uniform(170, 190, 500), rng.uniform(60, 75, 500)])
        X[:, 0] = (X[:, 0] + 180) % 360 - 180
        true = 4.0 * OnSphere(Matern(300.0, nu=1.5)) + WhiteKernel(0.05)
        y = np.linalg.cholesky(gram(true, X)) @ rng.normal(size=500)
        model = CompositeGPRegressor(1.0 * OnSphere(Matern(1.0, nu=1.5)) + WhiteKernel()).fit(X, y)
        error = model.theta_standard_errors_[1]
        assert abs(np.log(model.kernel_.k1.k2.kernel.length_scale / 300.0)) < 4 * error
        assert error < 0.3

    def test_starting_values_are_in_kilometers(self):
        """The spread of a kernel in degrees leads back to its length scale in kilometers."""
        _, inverse_squares = metric(OnSphere(Matern(500.0)), 2)
        scale = DataScale(1 / np.sqrt(2 * inverse_squares), 1.0)
        assert typical_values(OnSphere(Matern(1.0)), scale)["kernel__length_scale"] == pytest.approx(500.0)

    def test_bounds_on_covariances_hold(self, rng):
        kernel = OnSphere(Matern(900.0, nu=1.5))
        X, Y = on_globe(rng, 200), on_globe(rng, 200)
        bound = largest_covariance(kernel, np.abs(X - Y))
        assert (bound >= gram(kernel, X, Y).diagonal() - 1e-12).all()
        assert bound.min() < 0.1
        assert np.isinf(largest_covariance(OnSphere(RBF([1.0, 2.0, 3.0])), np.ones((2, 2)))).all()

    def test_models_are_saved(self, rng, tmp_path):
        X = on_globe(rng, 60)
        model = CompositeGPRegressor(OnSphere(Matern(3000.0)) + WhiteKernel(0.1), learning=None).fit(X, X[:, 1])
        model.save(tmp_path / "globe.cgp")
        loaded = CompositeGPRegressor.load(tmp_path / "globe.cgp")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))

    def test_other_columns_are_refused(self):
        with pytest.raises(ValueError, match="two columns, longitude and latitude; found 3"):
            gram(OnSphere(RBF()), np.zeros((2, 3)))


class TestMaternOnSphere:
    @pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
    def test_gradient_by_finite_differences(self, nu, rng):
        X = on_globe(rng, 9)
        kernel = MaternOnSphere(2000.0, 1.7, nu)
        check_gradient(kernel, X)

    def test_without_flattening_it_is_the_kernel_of_the_chord(self, rng):
        X = on_globe(rng, 30)
        np.testing.assert_allclose(MaternOnSphere(900.0)(X), OnSphere(Matern(900.0, nu=1.5))(X), rtol=1e-10)

    def test_is_positive_definite_and_turns_with_the_globe_about_its_axis(self, rng):
        X = on_globe(rng, 200)
        kernel = MaternOnSphere(900.0, 2.5)
        values = np.linalg.eigvalsh(kernel(X))
        assert values[0] > -1e-12 * values[-1]
        turn = Rotation.from_euler("z", 77, degrees=True)
        np.testing.assert_allclose(kernel(turned(X, turn)), kernel(X), rtol=1e-8, atol=1e-12)

    def test_length_scales_to_the_east_and_to_the_north(self):
        """Over a short way, at a latitude, they are those that the docstring says."""
        kernel, latitude = MaternOnSphere(500.0, 2.0, nu=0.5), 40.0
        s, c = np.sin(np.radians(latitude)), np.cos(np.radians(latitude))
        step, km = 1e-3, 1e-3 * np.pi / 180 * RADIUS
        east = -np.log(kernel([[0.0, latitude]], [[step, latitude]])[0, 0])
        north = -np.log(kernel([[0.0, latitude]], [[0.0, latitude + step]])[0, 0])
        assert east == pytest.approx(km * c / 500.0, rel=1e-4)
        assert north == pytest.approx(km * np.sqrt(s**2 + 4 * c**2) / 500.0, rel=1e-4)

    def test_nearness_and_bounds(self, rng):
        X, Y = on_globe(rng, 50), on_globe(rng, 50)
        kernel = MaternOnSphere(900.0, 2.0, nu=np.inf)
        places = in_length_scales(kernel + WhiteKernel(), X)
        squares = ((places[:, None] - places[None]) ** 2).sum(-1)
        np.testing.assert_allclose(np.exp(-0.5 * squares), kernel(X), rtol=1e-9, atol=1e-13)
        assert (largest_covariance(kernel, np.abs(X - Y)) >= gram(kernel, X, Y).diagonal() - 1e-12).all()
        scale = DataScale(1 / np.sqrt(2 * metric(kernel, 2)[1]), 1.0)
        assert typical_values(kernel, scale)["length_scale"] == pytest.approx(900.0)

    def test_slope_of_the_view_by_finite_differences(self, rng):
        X, kernel = on_globe(rng, 9), MaternOnSphere(900.0, 2.0)
        for column, step in enumerate(1e-5 * np.eye(2)):
            expected = (kernel.view(X + step) - kernel.view(X - step)) / 2e-5
            np.testing.assert_allclose(kernel.view_slope(X, column), expected, rtol=0, atol=1e-5)

    def test_a_smoothness_without_a_formula_is_refused(self):
        with pytest.raises(ValueError, match="nu must be 0.5"):
            gram(MaternOnSphere(nu=1.2), np.zeros((2, 2)))


class TestRotatedMatern:
    def test_is_an_ellipse_of_an_angle_and_a_ratio(self):
        """Along the long axis and across it, it is the kernel of one column with the two length scales."""
        for angle in (0.0, 20.0, 45.0, 90.0, 130.0, 179.0):
            kernel = RotatedMatern.at_angle(angle, ratio=5.0, length_scale=2.0)
            assert (kernel.angle, kernel.ratio) == (pytest.approx(angle), pytest.approx(5.0))
            along = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
            across = np.array([-along[1], along[0]])
            for direction, length in ((along, 2 * np.sqrt(5)), (across, 2 / np.sqrt(5))):
                steps = np.array([[0.3], [1.0], [2.5]])
                expected = Matern(length, nu=1.5)(steps, [[0.0]])
                np.testing.assert_allclose(kernel(steps * direction, np.zeros((1, 2))), expected, rtol=1e-12)

    @pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
    @pytest.mark.parametrize(("stretch", "slant"), [(1.0, 1.0), (1.00001, 1.0), (2.0, 0.7)])
    def test_gradient_by_finite_differences(self, nu, stretch, slant, rng):
        X = rng.normal(size=(7, 2))
        kernel = RotatedMatern(0.8, stretch, slant, nu)
        check_gradient(kernel, X)

    @pytest.mark.parametrize(
        "kernel", [RotatedMatern(0.8, 2.0, 0.7), RotatedMaternOnSphere(9000.0, 2.0, 0.7)], ids=str
    )
    def test_products_are_those_of_the_derivative(self, kernel, rng):
        X, C, V = 20 * rng.normal(size=(3, 7, 2)), rng.normal(size=(3, 7, 7)), rng.normal(size=(3, 7, 2))
        found = linearize(kernel, X)
        expected = np.einsum("bij,bpij,bjm->bpim", C, found.jacobian(), V)
        np.testing.assert_allclose(found.products(C, V), expected, rtol=1e-9, atol=1e-11)

    def test_fixed_parameters_have_no_gradient(self, rng):
        X = rng.normal(size=(4, 2))
        free, kernel = RotatedMatern(0.8, 2.0, 0.7), RotatedMatern(0.8, 2.0, 0.7, slant_bounds="fixed")
        names = [one.name for one in free.hyperparameters]
        others = [number for number, name in enumerate(names) if name != "slant"]
        assert len(others) == len(names) - 1 == 2
        found = kernel(X, eval_gradient=True)[1]
        np.testing.assert_array_equal(found, free(X, eval_gradient=True)[1][:, :, others])

    def test_equal_axes_are_the_matern_kernel(self, rng):
        X = rng.normal(size=(9, 2))
        np.testing.assert_allclose(RotatedMatern(0.7)(X), Matern(0.7, nu=1.5)(X), rtol=1e-12)

    def test_nearness_follows_the_ellipse(self, rng):
        X = rng.normal(size=(9, 2))
        kernel = RotatedMatern.at_angle(40.0, 3.0, length_scale=0.5, nu=np.inf)
        places = in_length_scales(2.0 * kernel + WhiteKernel(), X)
        squares = ((places[:, None] - places[None]) ** 2).sum(-1)
        np.testing.assert_allclose(np.exp(-0.5 * squares), kernel(X), rtol=1e-10)

    def test_bounds_on_covariances_hold(self, rng):
        kernel = RotatedMatern.at_angle(40.0, 3.0)
        X, Y = rng.normal(size=(100, 2)), rng.normal(size=(100, 2))
        assert (largest_covariance(kernel, np.abs(X - Y)) >= gram(kernel, X, Y).diagonal() - 1e-12).all()

    def test_angle_and_ratio_of_a_field_are_learned(self):
        rng = np.random.default_rng(11)
        X = rng.uniform(0, 7, size=(700, 2))
        true = RotatedMatern.at_angle(35.0, ratio=4.0, length_scale=1.2)
        y = np.linalg.cholesky(gram(true + WhiteKernel(0.02), X)) @ rng.normal(size=700)
        model = CompositeGPRegressor(1.0 * RotatedMatern() + WhiteKernel()).fit(X, y)
        found = model.kernel_.k1.k2
        assert found.angle == pytest.approx(35.0, abs=7.0)
        assert found.ratio == pytest.approx(4.0, rel=0.3)

    def test_is_exact_in_a_composite(self, rng):
        X = rng.normal(size=(30, 2))
        kernel = RotatedMatern.at_angle(70.0, 2.0) + WhiteKernel(0.1)
        y = rng.normal(size=30)
        model = CompositeGPRegressor(kernel, learning=None, segmentation=lambda X, k: Composite.full(30)).fit(X, y)
        exact = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
        np.testing.assert_allclose(model.predict(X + 0.1), exact.predict(X + 0.1), rtol=1e-8)

    def test_bad_parameters_are_refused(self):
        with pytest.raises(ValueError, match="ratio is long over short"):
            RotatedMatern.at_angle(0.0, 0.5)
        with pytest.raises(ValueError, match="nu must be 0.5"):
            gram(RotatedMatern(nu=1.2), np.zeros((2, 2)))
        with pytest.raises(ValueError, match="needs two columns; found 1"):
            gram(RotatedMatern(), np.zeros((2, 1)))
        with pytest.raises(ValueError, match="not even in each column"):
            simulate.stationary_field(RotatedMatern.at_angle(30.0, 2.0), (8, 8))


class TestRotatedMaternOnSphere:
    @pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
    def test_gradient_by_finite_differences(self, nu, rng):
        X = on_globe(rng, 9)
        kernel = RotatedMaternOnSphere(2000.0, 1.7, 0.6, nu, longitude=30.0, latitude=50.0)
        check_gradient(kernel, X)

    def test_equal_axes_are_the_kernel_of_the_chord(self, rng):
        X = on_globe(rng, 30)
        kernel = RotatedMaternOnSphere(900.0, longitude=30.0, latitude=50.0)
        np.testing.assert_allclose(kernel(X), OnSphere(Matern(900.0, nu=1.5))(X), rtol=1e-9)

    @pytest.mark.parametrize("latitude", [0.0, 35.0, -70.0])
    def test_is_the_rotated_kernel_of_a_map_around_the_center(self, latitude, rng):
        """Of kilometers to the east and to the north, over distances at which the sphere is flat."""
        steps = rng.uniform(-20, 20, size=(20, 2))
        per_degree = np.pi / 180 * RADIUS * np.array([np.cos(np.radians(latitude)), 1.0])
        center = np.array([-94.0, latitude])
        kernel = RotatedMaternOnSphere.at_angle(40.0, 4.0, 25.0, longitude=-94.0, latitude=latitude)
        flat = RotatedMatern.at_angle(40.0, 4.0, 25.0)
        np.testing.assert_allclose(kernel(center + steps / per_degree), flat(steps), rtol=0, atol=0.01)

    def test_is_positive_definite_and_turns_with_the_globe_and_its_center(self, rng):
        X = on_globe(rng, 200)
        kernel = RotatedMaternOnSphere.at_angle(25.0, 6.0, 900.0, longitude=20.0, latitude=40.0)
        values = np.linalg.eigvalsh(kernel(X))
        assert values[0] > -1e-12 * values[-1]
        moved = kernel.set_params(longitude=97.0)(turned(X, Rotation.from_euler("z", 77, degrees=True)))
        kernel.set_params(longitude=20.0)
        np.testing.assert_allclose(moved, kernel(X), rtol=1e-8, atol=1e-12)
        assert not kernel.is_stationary()

    def test_nearness_and_bounds(self, rng):
        X, Y = on_globe(rng, 50), on_globe(rng, 50)
        kernel = RotatedMaternOnSphere.at_angle(25.0, 3.0, 900.0, longitude=20.0, latitude=40.0, nu=np.inf)
        places = in_length_scales(kernel + WhiteKernel(), X)
        squares = ((places[:, None] - places[None]) ** 2).sum(-1)
        np.testing.assert_allclose(np.exp(-0.5 * squares), kernel(X), rtol=1e-9, atol=1e-13)
        assert (largest_covariance(kernel, np.abs(X - Y)) >= gram(kernel, X, Y).diagonal() - 1e-12).all()
        scale = DataScale(1 / np.sqrt(2 * metric(kernel, 2)[1]), 1.0)
        assert typical_values(kernel, scale)["length_scale"] == pytest.approx(900.0)

    def test_slope_of_the_view_by_finite_differences(self, rng):
        X, kernel = on_globe(rng, 9), RotatedMaternOnSphere(900.0, 2.0, 0.7, longitude=20.0, latitude=40.0)
        for column, step in enumerate(1e-5 * np.eye(2)):
            expected = (kernel.view(X + step) - kernel.view(X - step)) / 2e-5
            np.testing.assert_allclose(kernel.view_slope(X, column), expected, rtol=0, atol=1e-5)

    def test_angle_and_ratio_of_a_field_are_learned_and_saved(self, tmp_path):
        rng = np.random.default_rng(11)
        X = np.column_stack([rng.uniform(8, 14, 700), rng.uniform(58, 61, 700)])
        center = {"longitude": 11.0, "latitude": 59.5}
        true = RotatedMaternOnSphere.at_angle(35.0, 4.0, 60.0, **center)
        y = np.linalg.cholesky(gram(true + WhiteKernel(0.02), X)) @ rng.normal(size=700)
        model = CompositeGPRegressor(1.0 * RotatedMaternOnSphere(**center) + WhiteKernel()).fit(X, y)
        found = model.kernel_.k1.k2
        assert found.angle == pytest.approx(35.0, abs=7.0)
        assert found.ratio == pytest.approx(4.0, rel=0.3)
        model.save(tmp_path / "model")
        assert CompositeGPRegressor.load(tmp_path / "model").kernel_ == model.kernel_


class TestMapKernels:
    def test_of_many_places_in_a_region_the_range_may_differ_in_any_direction(self, rng):
        X = np.column_stack([rng.uniform(170, 190, 3000), rng.uniform(40, 50, 3000)])
        kernel = map_kernels(X, sphere=True, time=False, variance=2.0)["Matern 1/2 + RBF"]
        parts = [kernel.k1.k1.k2.kernel, kernel.k1.k2.k2.kernel]
        assert [type(part) for part in parts] == [RotatedMaternOnSphere] * 2
        assert [(part.nu, part.longitude, part.latitude) for part in parts] == [(0.5, 180, 45), (np.inf, 180, 45)]
        plane = map_kernels(X, sphere=False, time=False, variance=2.0)["Matern 3/2"]
        assert type(plane.k1.k2.kernel) is RotatedMatern

    @pytest.mark.parametrize("unit", [1e-4, 1e4])
    def test_a_distance_and_a_depth_have_no_direction_between_them(self, unit, rng):
        X = rng.uniform(0, 10, size=(3000, 2)) * [1.0, unit]
        kernel = map_kernels(X, sphere=False, time=False, variance=2.0)["Matern 3/2"]
        assert type(kernel.k1.k2.kernel) is Matern
        assert len(kernel.k1.k2.kernel.length_scale) == 2

    @pytest.mark.parametrize(("count", "width", "time"), [(100, 10, False), (3000, 170, False), (3000, 10, True)])
    def test_of_few_or_over_the_globe_or_with_time_it_differs_along_the_axes(self, count, width, time, rng):
        X = np.column_stack([rng.uniform(-width, width, count), rng.uniform(-5, 5, count), np.zeros(count)])
        (first, *_) = map_kernels(X, sphere=True, time=time, variance=1.0).values()
        names = {type(value).__name__ for value in first.get_params().values()}
        assert "MaternOnSphere" in names
        assert "RotatedMaternOnSphere" not in names
        (first, *_) = map_kernels(X[:100], sphere=False, time=time, variance=1.0).values()
        assert "RotatedMatern" not in {type(value).__name__ for value in first.get_params().values()}
