"""Random fits and damaged model files, each made from its number alone.

`python3 dev.py fuzz --minutes 10` runs new numbers, `--case 123` one of them again;
`--models` damages model files instead. Kernels, samplers, estimators, engines and
sources are those of `lists.py`, so that a new one is in without being listed.
"""
