"""The access control list (ACL): what each client may read and write.

The file is in Mosquitto's format, read as mosquitto.conf(5) and Mosquitto 2 do:

- `topic [read|write|readwrite|deny] PATTERN` is for the user of the last `user NAME` line above it. Before
  any such line it is for clients without a user name only. Without a word for the access it is readwrite.
- `pattern ...` is for all clients, wherever it stands; %u in it is the user's name and %c the client's id.
- What no line allows is refused; an empty file refuses everything.
- A user's `topic` lines come first, of them the `deny` lines, then those that allow; what none of them
  decides is left to the `pattern` lines, again `deny` first. A `topic` line that allows thus wins over a
  `pattern` line that denies. `#` and a leading `+` do not reach topics that begin with `$`.

Two things are stricter than in Mosquitto. A name with `/`, `+` or `#` in it, or one that would bring a `$` to
the beginning of a topic, never replaces %u or %c: a line that needs it allows nothing, and if it denies, no
`pattern` line allows that client anything. And Mosquitto accepts every subscription and then delivers what
the client may read; this broker refuses a subscription that could never deliver anything, so that the client
learns of it: one without wildcards if the client may not read the topic, another if no line that allows
reading overlaps it. The deliveries are the same: `may_read` applies the `deny` lines to each message.

Cost: a decision that was made before is one look into a dictionary; a new one is O(n) in the lines that
concern the client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from weakref import WeakSet

from betimes.language.files.table_reader import Mistakes
from betimes.language.suggestions import did_you_mean, quoted
from betimes.matching.topics import (
    LEVELS_MAX,
    check_topic_pattern,
    patterns_overlap,
    shared_parts,
    topic_matches,
)
from betimes.model.errors import TextError
from betimes.mqtt.reason_codes import PublishCode

CLIENTS_REMEMBERED_MAX = 100_000
DECISIONS_REMEMBERED_MAX = 262_144  # of all clients together
TOPIC_LENGTH_REMEMBERED_MAX = 256  # so that a flood of long topics cannot fill the memory
LINES_MAX = 1_000_000

_NAMES = re.compile("%[uc]")


class Access(Enum):
    """The kind of access that a line allows, or denies."""

    READ = "read"
    WRITE = "write"
    READWRITE = "readwrite"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One `topic` or `pattern` line."""

    access: Access
    pattern: str

    def allows(self, access: Access) -> bool:
        """Tell whether the line allows this access to the topics that match its pattern."""
        return self.access in (access, Access.READWRITE)


class Rights:
    """The rights of one client: the lines that concern it, with its names filled in, and past decisions."""

    __slots__ = ("__weakref__", "_memory", "_readable", "_stages", "_writable")

    def __init__(self, stages: tuple[tuple[Rule, ...], ...], memory: _Memory) -> None:
        self._stages = stages
        self._readable: dict[str, bool] = {}
        self._writable: dict[str, bool] = {}
        self._memory = memory
        memory.rights.add(self)

    def may_read(self, topic: str) -> bool:
        """Tell whether the client may get messages of this topic."""
        decided = self._readable.get(topic)
        return self._decide(Access.READ, topic, self._readable) if decided is None else decided

    def may_write(self, topic: str) -> bool:
        """Tell whether the client may publish to this topic."""
        decided = self._writable.get(topic)
        return self._decide(Access.WRITE, topic, self._writable) if decided is None else decided

    def may_subscribe(self, pattern: str) -> bool:
        """Tell whether a pattern, shared or not, could deliver anything that the client may read."""
        _, inner = shared_parts(pattern)
        if "+" not in inner and "#" not in inner:
            return self.may_read(inner)
        return any(
            rule.allows(Access.READ) and patterns_overlap(rule.pattern, inner)
            for rules in self._stages
            for rule in rules
        )

    def forget(self) -> None:
        """Forget the decisions, not the rules."""
        self._readable.clear()
        self._writable.clear()

    def _decide(self, access: Access, topic: str, decisions: dict[str, bool]) -> bool:
        decision = self._decision(access, topic)
        if len(topic) <= TOPIC_LENGTH_REMEMBERED_MAX:
            self._memory.make_room()
            decisions[topic] = decision
        return decision

    def _decision(self, access: Access, topic: str) -> bool:
        for rules in self._stages:
            met = [rule for rule in rules if topic_matches(rule.pattern, topic)]
            if any(rule.access is Access.DENY for rule in met):
                return False
            if any(rule.allows(access) for rule in met):
                return True
        return False


class _Memory:
    """The number of remembered decisions, of all clients together.

    Apart from the list, so that a list that was replaced is freed at once, not with the next garbage.
    """

    def __init__(self) -> None:
        self.rights: WeakSet[Rights] = WeakSet()
        self._count = 0

    def make_room(self) -> None:
        """Count one more decision; if they are too many, forget all of them."""
        self._count += 1
        if self._count > DECISIONS_REMEMBERED_MAX:
            for rights in self.rights:
                rights.forget()
            self._count = 1


NO_RIGHTS = Rights((), _Memory())  # of a session that has ended


class AccessList:
    """An access control list. It is immutable: a changed file is read again."""

    def __init__(self, topics: Mapping[str | None, tuple[Rule, ...]], patterns: tuple[Rule, ...]) -> None:
        self._topics = topics
        self._patterns = patterns
        self._names_client = any("%c" in rule.pattern for rule in patterns)
        self._memory = _Memory()
        self._rights: dict[tuple[str | None, str], Rights] = {}

    @classmethod
    def read(cls, text: str, place: str) -> AccessList:
        """Return the list in a text; `place` names the file in messages. Reports all mistakes at once."""
        mistakes = Mistakes()
        topics: dict[str | None, list[Rule]] = {}
        patterns: list[Rule] = []
        user: str | None = None
        lines = text.split("\n")
        if len(lines) > LINES_MAX:
            mistakes.add(place, f"it has {len(lines):,} lines, and {LINES_MAX:,} are allowed")
        for number, line in enumerate(lines[:LINES_MAX], 1):
            where = f"{place}:{number}"
            word, rest = _first_word(line)
            if not word or word.startswith("#"):
                continue
            if word == "user":
                if not rest:
                    mistakes.add(where, "the user's name is missing", "write user NAME")
                user = rest
                topics.setdefault(user, [])
            elif word in ("topic", "pattern"):
                rule = _read_rule(word, rest, where, mistakes)
                if rule is not None:
                    (patterns if word == "pattern" else topics.setdefault(user, [])).append(rule)
            else:
                hint = did_you_mean(word, ["user", "topic", "pattern"], "words")
                mistakes.add(where, f"a line does not begin with {quoted(word)}", hint)
        mistakes.raise_if_any(place)
        return cls({each: tuple(rules) for each, rules in topics.items()}, tuple(patterns))

    def rights(self, user: str | None, client_id: str) -> Rights:
        """Return the rights of a client; the session keeps them, so that this lookup is made once."""
        key = (user, client_id if self._names_client else "")
        rights = self._rights.get(key)
        if rights is None:
            if len(self._rights) >= CLIENTS_REMEMBERED_MAX:
                self._rights.clear()
            stages = self._topics.get(user, ()), _filled(self._patterns, user, client_id)
            rights = self._rights[key] = Rights(stages, self._memory)
        return rights


def _filled(rules: tuple[Rule, ...], user: str | None, client_id: str) -> tuple[Rule, ...]:
    """Return the `pattern` lines that concern a client, with its names in place of %u and %c."""
    names = {"%u": user, "%c": client_id}
    filled = []
    for rule in rules:
        needed = [names[each] for each in _NAMES.findall(rule.pattern)]
        if None in needed:
            continue  # without a user's name, a line about it neither allows nor denies
        # In one pass, so that a client called %u stays what it is.
        pattern = _NAMES.sub(lambda found: names[found[0]] or "", rule.pattern)
        unsafe = any(letter in each for each in needed if each is not None for letter in "/+#")
        if not unsafe and pattern.startswith("$") == rule.pattern.startswith("$"):
            filled.append(Rule(access=rule.access, pattern=pattern))
        elif rule.access is Access.DENY:
            return ()  # what the line denies is unknown: deny everything rather than too little
    return tuple(filled)


def _first_word(text: str) -> tuple[str, str]:
    """Return the first word of a line and the rest of it, which may have spaces inside."""
    word, *rest = re.split("[ \t]+", text.strip(" \t\r\f\v"), maxsplit=1)
    return word, rest[0] if rest else ""


def _read_rule(word: str, rest: str, place: str, mistakes: Mistakes) -> Rule | None:
    """Return the rule of a `topic` or `pattern` line, or note what is wrong with it."""
    first, pattern = _first_word(rest)
    accesses = [access.value for access in Access]
    if not rest:
        mistakes.add(place, "the topic is missing", f"write {word} read PATTERN")
        return None
    if not pattern and first in accesses:
        hint = f"write {word} {first} PATTERN, or {word} readwrite {first} for a topic of that name"
        mistakes.add(place, f"after {first} the topic is missing", hint)
        return None
    if pattern and first not in accesses:
        problem = f"{quoted(first)} is no kind of access, and a topic with spaces needs one before it"
        mistakes.add(place, problem, did_you_mean(first, accesses, "words"))
        return None
    access, pattern = (Access(first), pattern) if pattern else (Access.READWRITE, first)
    try:
        check_topic_pattern(pattern)
    except TextError as error:
        mistakes.add_text_error(place, error)
        return None
    if word == "pattern" and any(len(_NAMES.findall(level)) > 1 for level in pattern.split("/")):
        problem = "two names in one level can be mistaken for each other"
        mistakes.add(place, problem, "give %u and %c a level each")
        return None
    return Rule(access=access, pattern=pattern)


def publish_refusal(rights: Rights | None, topic: str) -> PublishCode | None:
    """Return why a client with these rights may not publish to a topic; None: it may.

    The codec has checked that the topic is one.
    """
    if topic[0] == "$":
        return PublishCode.NOT_AUTHORIZED  # the broker's own
    if rights is not None and not rights.may_write(topic):
        return PublishCode.NOT_AUTHORIZED
    is_deep = len(topic) >= LEVELS_MAX and topic.count("/") >= LEVELS_MAX  # most are too short for that
    return PublishCode.TOPIC_NAME_INVALID if is_deep else None
