"""HTML pages, plots and the dashboard.

Begin reading at `report_sections.py`: the sections of `betimes report`, drawn by `report_plots.py`. `page.py`
renders sections as one HTML file. `run_figure.py` runs a figure of a paper as a sweep on Spark,
`figure_plots.py` draws it, `figures_page.py` collects all of them. `reference.py` generates docs/reference.
`dashboard/` is the live page.

May import `terminal` and everything below it, but not `control`. It computes no statistics: the pipeline
does.
"""
