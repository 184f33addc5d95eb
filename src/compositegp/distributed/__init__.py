"""Data that one machine does not hold: partitions of a Dask collection are treated where they lie, and added up."""

try:
    import dask  # noqa: F401
except ImportError as error:
    raise ImportError("compositegp.distributed needs Dask. pip install 'compositegp[dask]'.") from error

from compositegp.distributed.regressor import DistributedGPRegressor

__all__ = ["DistributedGPRegressor"]
