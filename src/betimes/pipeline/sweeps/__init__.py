"""Many simulations, one for each row of parameters, as Spark tasks.

Imports of the pipeline `spark` and `tables`. Begin reading at `sweep.py`: `run_sweep` takes rows and a
function, and returns results and failures. `warm_archive.py` writes Spark's class archive, which needs a
session and some work. It knows no simulator: the function is the caller's.
"""
