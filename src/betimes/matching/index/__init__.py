"""The matching index: content filters in a layout that kernels can search.

`index.MatchingIndex` is the entrance and the place to begin reading. A filter becomes `rows` (boxes on
`lanes`, one lane per reading of an attribute). New rows wait in the `tail`; a `segment` has them sorted
into a `tree` of `tiles`, whose bitmaps test 512 rows at once (`simd`). `match` matches one event or a
batch of them.

The package imports `model` and `kernels`. An index is for one thread at a time, and knows no topics.
"""
