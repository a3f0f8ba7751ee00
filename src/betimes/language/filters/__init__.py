"""Content filters: the text of a Spark SQL predicate becomes a union of boxes.

`parse` is the entrance and the place to begin reading. It uses `tokens`, `predicates` (the syntax tree, with
its three-valued logic) and `boxes` (the normal form, made of `constraints`). The result is a `Filter` of
`betimes.model`; matching events against many filters is the work of `betimes.matching`.
"""
