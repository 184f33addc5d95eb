"""Programs in Triton: one pass over memory for what PyTorch does in many. See `fused` for what they compute.

All the numbers are in double precision. A program works on a tile; tiles are counted by one number, blocks first.
"""

# mypy: ignore-errors
# ruff: noqa: D103

import triton
import triton.language as tl

FEW_COLUMNS = tl.constexpr(16)  # of the points, up to which loops over them are unrolled


@triton.jit
def profile(s, smoothness):
    """φ(s) and −2 φ′(s): see `Profile` in the kernels. A smoothness of −1 leaves s as it is.

    The smoothness is looked at when the program runs, so that there is one program to compile for all of them.
    """
    value = s
    slope = s
    if smoothness == 0:  # Gaussian
        value = tl.exp(-0.5 * s)
        slope = value
    if smoothness > 0:
        r = tl.sqrt(s)
        decay = tl.exp(-r)
        if smoothness == 1:
            value = decay
            slope = tl.where(r > 0, decay / tl.where(r > 0, r, 1.0), 0.0)
        elif smoothness == 3:
            value = (1.0 + r) * decay
            slope = decay
        else:
            value = (1.0 + r + s / 3.0) * decay
            slope = (1.0 + r) * (decay / 3.0)
    return value, slope


@triton.jit
def square(X, Y, rows, columns, n, m, step_x, step_y, column):
    """Squared differences of a tile of pairs in one column."""
    x = tl.load(X + rows * step_x + column, mask=rows < n, other=0.0)
    y = tl.load(Y + columns * step_y + column, mask=columns < m, other=0.0)
    difference = x[:, None] - y[None, :]
    return difference * difference


@triton.jit
def squares(X, Y, rows, columns, n, m, d: tl.constexpr):
    """Squared distances of a tile of pairs, from differences."""
    s = square(X, Y, rows, columns, n, m, d, d, 0)
    if d <= FEW_COLUMNS:
        for column in tl.static_range(1, d):
            s += square(X, Y, rows, columns, n, m, d, d, column)
    else:
        for column in range(1, d):
            s += square(X, Y, rows, columns, n, m, d, d, column)
    return s


@triton.jit(do_not_specialize=["y_block", "smoothness"])
def gram(
    X,
    Y,
    out,
    n,
    m,
    y_block,
    smoothness,
    d: tl.constexpr,
    SYMMETRIC: tl.constexpr,
    TILE: tl.constexpr,
):
    down, across = tl.cdiv(n, TILE), tl.cdiv(m, TILE)
    program = tl.program_id(0)
    block = (program // (down * across)).to(tl.int64)
    i, j = (program // across) % down, program % across
    if SYMMETRIC and j > i:
        return
    rows, columns = i * TILE + tl.arange(0, TILE), j * TILE + tl.arange(0, TILE)
    s = squares(X + block * n * d, Y + block * y_block, rows, columns, n, m, d)
    value, _ = profile(s, smoothness)
    matrix = out + block * n * m
    inside = (rows < n)[:, None] & (columns < m)[None, :]
    tl.store(matrix + rows[:, None] * m + columns[None, :], value, mask=inside)
    if SYMMETRIC and j < i:
        inside = (columns < m)[:, None] & (rows < n)[None, :]
        tl.store(matrix + columns[:, None] * m + rows[None, :], tl.trans(value), mask=inside)


@triton.jit(do_not_specialize=["n_vectors", "weight_block", "smoothness"])
def products(
    X,
    weights,
    vectors,
    out,
    n,
    n_vectors,
    weight_block,
    weight_row,
    weight_column,
    smoothness,
    d: tl.constexpr,
    COLUMNS: tl.constexpr,
    TILE: tl.constexpr,
):
    down = tl.cdiv(n, TILE)
    program = tl.program_id(0)
    vector = program % n_vectors
    i = (program // n_vectors) % down
    block = (program // (n_vectors * down)).to(tl.int64)
    points = X + block * n * d
    rows = i * TILE + tl.arange(0, TILE)
    numbers = tl.arange(0, COLUMNS)
    of_value = tl.zeros((TILE,), dtype=tl.float64)
    of_slope = tl.zeros((TILE, COLUMNS), dtype=tl.float64)
    for start in range(0, n, TILE):
        columns = start + tl.arange(0, TILE)
        value, slope = profile(squares(points, points, rows, columns, n, n, d), smoothness)
        inside = (rows < n)[:, None] & (columns < n)[None, :]
        places = block * weight_block + rows[:, None] * weight_row + columns[None, :] * weight_column
        weight = tl.load(weights + places, mask=inside, other=0.0)
        v = tl.load(vectors + (block * n + columns) * n_vectors + vector, mask=columns < n, other=0.0)
        weight *= v[None, :]
        of_value += tl.sum(weight * value, axis=1)
        weight *= slope
        if d <= FEW_COLUMNS:
            for column in tl.static_range(d):
                moved = tl.sum(weight * square(points, points, rows, columns, n, n, d, d, column), axis=1)
                of_slope += tl.where(numbers[None, :] == column, moved[:, None], 0.0)
        else:
            for column in range(d):
                moved = tl.sum(weight * square(points, points, rows, columns, n, n, d, d, column), axis=1)
                of_slope += tl.where(numbers[None, :] == column, moved[:, None], 0.0)
    place = out + (block * (d + 1) * n + rows) * n_vectors + vector
    tl.store(place, of_value, mask=rows < n)
    places = place[:, None] + (1 + numbers[None, :]) * n * n_vectors
    tl.store(places, of_slope, mask=(rows < n)[:, None] & (numbers < d)[None, :])


@triton.jit(do_not_specialize=["m", "capacity", "share"])
def within(
    points,
    tests,
    bounds,
    counts,
    positions,
    distances,
    n,
    m,
    capacity,
    share,
    d: tl.constexpr,
    TESTS: tl.constexpr,
    POINTS: tl.constexpr,
):
    down = tl.cdiv(m, TESTS)
    program = tl.program_id(0)
    rows = (program % down) * TESTS + tl.arange(0, TESTS)
    bound = tl.load(bounds + rows, mask=rows < m, other=-1.0)
    places = rows[:, None].to(tl.int64) * capacity
    first = (program // down) * share
    for start in range(first, tl.minimum(first + share, n), POINTS):
        columns = start + tl.arange(0, POINTS)
        s = square(tests, points, rows, columns, m, n, 1, 1, 0)
        if d <= FEW_COLUMNS:
            for column in tl.static_range(1, d):
                s += square(tests + column * m, points + column * n, rows, columns, m, n, 1, 1, 0)
        else:
            for column in range(1, d):
                s += square(tests + column * m, points + column * n, rows, columns, m, n, 1, 1, 0)
        near = (s <= bound[:, None]) & (columns < n)[None, :]
        if tl.max(near.to(tl.int32)) > 0:
            target = counts + rows[:, None] + tl.zeros((TESTS, POINTS), dtype=tl.int32)
            place = tl.atomic_add(target, 1, mask=near, sem="relaxed")
            kept = near & (place < capacity)
            found = columns[None, :] + tl.zeros((TESTS, POINTS), dtype=tl.int32)
            tl.store(positions + places + place, found, mask=kept)
            tl.store(distances + places + place, s, mask=kept)
