"""Maps with error bars: gaps in rasters filled, and stations interpolated to a grid; xarray in, xarray out.

Needs xarray (``pip install 'compositegp[spatial]'``).
"""

from compositegp.spatial.filling import choose_variable, fill, learn_raster
from compositegp.spatial.map_model import MapModel
from compositegp.spatial.pictures import draw_filled
from compositegp.spatial.raster_files import open_raster, write_raster

__all__ = ["MapModel", "choose_variable", "draw_filled", "fill", "learn_raster", "open_raster", "write_raster"]
