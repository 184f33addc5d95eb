"""Data that do not fit on one machine: each partition of a Dask collection is worked on where it is stored."""

try:
    import dask  # noqa: F401
except ImportError as error:
    raise ImportError("compositegp.distributed needs Dask. pip install 'compositegp[dask]'.") from error

from compositegp.distributed.regressor import DistributedGPRegressor

__all__ = ["DistributedGPRegressor"]
