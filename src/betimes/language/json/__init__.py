"""JSON that programs exchange: distributions and statistics, written and read.

`statistics` is the entrance and the place to begin. Input is untrusted and bounded: all mistakes are listed
with their place.

The package imports `model` and the readers of `language.files`. It opens no files and no sockets.
"""
