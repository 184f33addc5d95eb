"""Maps with error bars: gaps in rasters filled, and stations interpolated to a grid; xarray in, xarray out.

Needs xarray (``pip install 'compositegp[spatial]'``).
"""

from compositegp.spatial.baselines import MapScores, score_map
from compositegp.spatial.cautions import cautions_about
from compositegp.spatial.filling import choose_variable, fill, learn_raster
from compositegp.spatial.kriging import krige, learn_stations
from compositegp.spatial.map_model import MapModel
from compositegp.spatial.pictures import draw_filled, draw_stations
from compositegp.spatial.raster_files import check_raster_file, open_raster, write_raster
from compositegp.spatial.regions import read_regions, region_averages
from compositegp.spatial.stations import Stations, read_station_file
from compositegp.spatial.target_grid import check_template

__all__ = [
    "MapModel",
    "MapScores",
    "Stations",
    "cautions_about",
    "check_raster_file",
    "check_template",
    "choose_variable",
    "draw_filled",
    "draw_stations",
    "fill",
    "krige",
    "learn_raster",
    "learn_stations",
    "open_raster",
    "read_regions",
    "read_station_file",
    "region_averages",
    "score_map",
    "write_raster",
]
