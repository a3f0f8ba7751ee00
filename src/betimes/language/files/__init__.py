"""Configuration and scenario files: TOML text becomes the settings and scenarios of `model`.

`scenario_file` and `server_file` are the entrances; `table_reader` is the reader of one table that all of
them use, and the place to begin. It notes all mistakes of a file before it raises.

The package imports `model` and the parsers of `language`. It opens no files.
"""
