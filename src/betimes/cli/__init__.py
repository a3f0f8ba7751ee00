"""The `betimes` command: one module for each command, and nothing else.

Begin reading at `app.py`, which registers the commands and turns errors into exit codes; `main.py` is the
entry point. A command module declares the options, checks them, calls the package that does the work, and
prints the result. Options and printing that several commands share are in `betimes.terminal`.

May import every other package. No other package imports it.
"""
