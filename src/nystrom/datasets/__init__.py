"""The four data sets of the paper, and stand-ins where they cannot be had.

Musco & Musco, *Recursive Sampling for the Nyström Method* (NIPS 2017), section 5, uses
YearPredictionMSD, Covertype, Cod-RNA and Adult. `fetch_…` gives each of them, prepared
as in the paper, from the public archive, from the files of an earlier call, or from a
file of your own. `make_stand_in` generates data of the same shape without any network.

No data come with this package. Each set has its own licence, which `DESCR` names.
"""

from .adult import fetch_adult
from .by_name import clear_data_home, make_stand_in
from .cod_rna import fetch_cod_rna
from .covertype import fetch_covertype
from .data_home import get_data_home
from .year_prediction_msd import fetch_year_prediction_msd

__all__ = [
    "clear_data_home",
    "fetch_adult",
    "fetch_cod_rna",
    "fetch_covertype",
    "fetch_year_prediction_msd",
    "get_data_home",
    "make_stand_in",
]
