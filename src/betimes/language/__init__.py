"""The languages that people write: filters, quantities, guarantees, resume tokens, and files.

`filters/` parses content filters, `files/` reads TOML (scenarios, servers, overlays), `json/` reads and
writes statistics. `quantities` parses values with a unit; begin there for the style of a parser, and with
`files/table_reader.py` for files.

The package imports `model` only. It parses text and opens no files; the caller reads them. An error states
the place and a hint.
"""
