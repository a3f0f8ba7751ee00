"""What predicate does sqlglot's tree stand for?

Only the nodes a filter can have are understood, and of those only the arguments known here: whatever
sqlglot may add (a NOT that becomes a flag of LIKE) is refused rather than overlooked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from betimes.language.filters.predicates import And, Known, Like, Missing, Not, OneOf, Or, Order, Predicate
from betimes.language.suggestions import quoted
from betimes.model.errors import TextError

_COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_MIRRORED: Mapping[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DEFAULT_ESCAPE = "\\"


@dataclass(frozen=True, slots=True)
class _Attribute:
    name: str


@dataclass(frozen=True, slots=True)
class _Literal:
    value: float | str | bool | None


Operand = _Attribute | _Literal


def predicate_of(text: str, tree: exp.Expr) -> Predicate:
    """Return the predicate of a parsed condition; the text is needed to show where something is wrong."""
    return _Reader(text).predicate(tree)


class _Reader:
    """Turns nodes into predicates; holds the text for its complaints."""

    def __init__(self, text: str) -> None:
        self._text = text

    def predicate(self, node: exp.Expr) -> Predicate:
        """Return what the node says of an event."""
        match node:
            case exp.Paren():
                return self.predicate(node.this)
            case exp.And():
                return And(tuple(self.predicate(part) for part in _chain(node, exp.And)))
            case exp.Or():
                return Or(tuple(self.predicate(part) for part in _chain(node, exp.Or)))
            case exp.Not():
                return Not(self.predicate(node.this))
            case exp.Column() | exp.Literal() | exp.Boolean() | exp.Null() | exp.RawString() | exp.Neg():
                return self._bare(node)
        return self._condition(node)

    def _condition(self, node: exp.Expr) -> Predicate:
        if type(node) in _COMPARISONS:
            self._only(node, "this", "expression")
            left, right = self._operand(node.this), self._operand(node.expression)
            return self._comparison(node, left, _COMPARISONS[type(node)], right)
        match node:
            case exp.Between():
                return self._between(node)
            case exp.In():
                return self._in(node)
            case exp.Is():
                return self._is(node)
            case exp.Like():
                return self._like(node, _DEFAULT_ESCAPE)
            case exp.Escape():
                return self._escaped(node)
        return self._refuse(
            node, "this is not part of a filter", "compare an attribute with a value: speed > 5"
        )

    def _bare(self, node: exp.Expr) -> Predicate:
        """Return an operand that stands for a condition: a flag, TRUE, FALSE or NULL."""
        operand = self._operand(node)
        if isinstance(operand, _Attribute):
            return OneOf(operand.name, (True,))
        if operand.value is None or isinstance(operand.value, bool):
            return Known(operand.value)
        return self._refuse(
            node, "a value alone is not a condition", "compare an attribute with it: speed > 5"
        )

    def _comparison(self, node: exp.Expr, left: Operand, operator: str, right: Operand) -> Predicate:
        if isinstance(left, _Literal) and isinstance(right, _Attribute):
            left, right, operator = right, left, _MIRRORED.get(operator, operator)
        if isinstance(right, _Attribute):
            hint = f"if {quoted(right.name)} is meant as a text, write '{right.name}'"
            return self._refuse(self._last_column(node), "an attribute is compared with a value only", hint)
        if isinstance(left, _Literal):
            return _compared_values(left.value, operator, right.value)
        if operator == "<=>":
            return _same(left.name, right.value)
        if right.value is None:
            return Known(None)
        if operator in _MIRRORED:
            return Order(left.name, operator, right.value)
        equal = _one_of(left.name, right.value)
        return equal if operator == "=" else Not(equal)

    def _between(self, node: exp.Between) -> Predicate:
        self._only(node, "this", "low", "high")
        value = self._operand(node.this)
        low, high = self._operand(node.args["low"]), self._operand(node.args["high"])
        return And((self._comparison(node, value, ">=", low), self._comparison(node, value, "<=", high)))

    def _in(self, node: exp.In) -> Predicate:
        self._only(node, "this", "expressions")
        value = self._operand(node.this)
        listed = [self._operand(item) for item in node.expressions]
        literals = [item.value for item in listed if isinstance(item, _Literal)]
        if isinstance(value, _Literal) or len(literals) < len(listed):
            return Or(tuple(self._comparison(node, value, "=", item) for item in listed))
        return _listed(value.name, literals)

    def _is(self, node: exp.Is) -> Predicate:
        self._only(node, "this", "expression", "negate")
        operand, what = self._operand(node.this), node.expression
        if not isinstance(what, exp.Null | exp.Boolean):
            return self._refuse(node, "IS takes NULL, TRUE or FALSE", "to compare write = or <>")
        asked = None if isinstance(what, exp.Null) else bool(what.this)
        if isinstance(operand, _Literal):
            same: Predicate = Known(operand.value is asked)
        else:
            same = _same(operand.name, asked)
        return Not(same) if node.args.get("negate") else same

    def _escaped(self, node: exp.Escape) -> Predicate:
        self._only(node, "this", "expression")
        escape = self._operand(node.expression)
        if not isinstance(node.this, exp.Like):
            return self._refuse(node, "ESCAPE belongs after the text of LIKE", "")
        if not isinstance(escape, _Literal) or not isinstance(escape.value, str) or len(escape.value) != 1:
            return self._refuse(node.expression, "the escape is one letter", "write LIKE '10/%%' ESCAPE '/'")
        return self._like(node.this, escape.value)

    def _like(self, node: exp.Like, escape: str) -> Predicate:
        self._only(node, "this", "expression", "negate")
        operand, pattern = self._operand(node.this), self._operand(node.expression)
        if not isinstance(pattern, _Literal) or not (pattern.value is None or isinstance(pattern.value, str)):
            return self._refuse(node.expression, "LIKE takes a text", "write LIKE 'prefix%'")
        if pattern.value is None:
            return Known(None)
        text, is_prefix = self._pattern(node.expression, pattern.value, escape)
        if isinstance(operand, _Attribute):
            return Like(operand.name, text, is_prefix, negated=bool(node.args.get("negate")))
        found = Like("", text, is_prefix).of(operand.value)
        return Not(Known(found)) if node.args.get("negate") else Known(found)

    def _pattern(self, node: exp.Expr, pattern: str, escape: str) -> tuple[str, bool]:
        """Return the text of a LIKE pattern without its escapes, and whether more may follow it."""
        plain: list[str] = []
        wildcards: list[int] = []  # where in the plain text they stand
        letters = iter(pattern)
        for letter in letters:
            if letter != escape:
                wildcards += [len(plain)] if letter in "%_" else []
                plain.append(letter)
                continue
            following = next(letters, "")
            if following not in ("%", "_", escape):
                hint = f"only %, _ and {escape} are escaped; double a {escape} that is meant"
                self._refuse(node, f"nothing here needs the escape {quoted(escape)}", hint)
            plain.append(following)
        is_prefix = False
        while wildcards and wildcards[-1] == len(plain) - 1 and plain[-1] == "%":
            wildcards.pop()
            plain.pop()
            is_prefix = True
        if wildcards:
            sign = plain[wildcards[0]]
            hint = f"only a % at the end is a wildcard here; write {escape}{sign} for the sign itself"
            self._refuse(node, f"the pattern has a {quoted(sign)} before its end", hint)
        return "".join(plain), is_prefix

    def _operand(self, node: exp.Expr) -> Operand:
        """Return the attribute or value that a node names."""
        match node:
            case exp.Paren():
                return self._operand(node.this)
            case exp.Column(this=exp.Identifier()):
                self._only(node, "this")
                return _Attribute(str(node.this.this))
            case exp.Literal(is_string=True) | exp.RawString():
                return _Literal(str(node.this))
            case exp.Literal():
                return _Literal(float(str(node.this)))
            case exp.Boolean():
                return _Literal(bool(node.this))
            case exp.Null():
                return _Literal(None)
            case exp.Neg():
                operand = self._operand(node.this)
                if isinstance(operand, _Literal) and type(operand.value) is float:
                    return _Literal(-operand.value)
        hint = "join conditions with AND and OR; compare attributes with values"
        self._refuse(node, "a condition cannot be compared", hint)
        raise AssertionError("refusing raises")

    def _last_column(self, node: exp.Expr) -> exp.Expr:
        """Return the rightmost attribute below a node."""
        columns = sorted(node.find_all(exp.Column), key=_start)
        return columns[-1] if columns else node

    def _only(self, node: exp.Expr, *known: str) -> None:
        """Refuse a node that carries more than is understood here."""
        unknown = [name for name, value in node.args.items() if value and name not in known]
        if unknown:
            self._refuse(node, f"this is not part of a filter ({', '.join(unknown)})", "write it more simply")

    def _refuse(self, node: exp.Expr, problem: str, hint: str) -> Predicate:
        raise TextError(self._text, _start(node), problem, hint)


def _chain(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """Yield the parts of a AND b AND c in their order; without recursion, for chains may be long."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, kind):
            waiting += [part.args["expression"], part.this]
        else:
            yield part


def _start(node: exp.Expr) -> int:
    """Return where the first word below a node stands that sqlglot has noted."""
    return min((part.meta["start"] for part in node.walk() if "start" in part.meta), default=0)


def _one_of(attribute: str, literal: float | str | bool) -> OneOf:
    if isinstance(literal, str):
        return OneOf(attribute, (literal,))
    return OneOf(attribute, (literal,)) if isinstance(literal, bool) else OneOf(attribute, (float(literal),))


def _listed(attribute: str, literals: list[float | str | bool | None]) -> Predicate:
    """Return `attribute IN (...)`: one part for each type in the list, and one for a NULL."""
    flags = tuple(literal for literal in literals if isinstance(literal, bool))
    texts = tuple(literal for literal in literals if isinstance(literal, str))
    numbers = tuple(literal for literal in literals if isinstance(literal, float))
    parts: list[Predicate] = [OneOf(attribute, kind) for kind in (numbers, texts, flags) if kind]
    if None in literals:
        parts.append(Known(None))
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _same(attribute: str, literal: float | str | bool | None) -> Predicate:
    """Return `attribute <=> literal`: as `=`, but false where the attribute is missing."""
    if literal is None:
        return Missing(attribute)
    return And((_one_of(attribute, literal), Missing(attribute, negated=True)))


def _compared_values(
    left: float | str | bool | None, operator: str, right: float | str | bool | None
) -> Known:
    """Return what a comparison of two values comes to."""
    if operator == "<=>" and (left is None or right is None):
        return Known(left is right)
    if right is None:
        return Known(None)
    if operator in _MIRRORED:
        return Known(Order("", operator, right).of(left))
    equal = _one_of("", right)
    return Known((equal.opposite() if operator == "<>" else equal).of(left))
