"""A sample of many rows that is spread over all of them."""

import numpy as np

from compositegp.backend.arrays import Indices


def spread_rows(n_rows: int, most: int) -> Indices:
    """Rows that are spread over all of them, in order: one from each of `most` equal parts, or all the rows.

    The place in each part is random. Rows at equal distances may keep step with something in the data: every 24th hour
    is the same hour of the day, and every 300th cell of a raster may be in the same column.

    Parameters
    ----------
    n_rows : int
    most : int
        The largest number of rows.

    Returns
    -------
    int array of shape (min(n_rows, most),)

    Examples
    --------
    >>> spread_rows(3, 10)
    array([0, 1, 2])
    >>> len(spread_rows(2_400, 100)), len(set(spread_rows(2_400, 100) % 24)) > 10
    (100, True)
    """
    if n_rows <= most:
        return np.arange(n_rows)
    places = np.arange(most) + np.random.default_rng(0).uniform(size=most)
    return np.minimum((places * (n_rows / most)).astype(np.intp), n_rows - 1)
