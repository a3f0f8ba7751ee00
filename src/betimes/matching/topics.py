"""MQTT topics and patterns: matching, overlap, and trees of many of them.

Topic names and patterns are those of MQTT 5, section 4.7 (a pattern is what MQTT calls a topic filter):
levels between slashes, `+` for any one level, `#` for all the rest and for the level above it. A wildcard
at the very beginning does not match a topic that begins with `$`.

`topic_matches` is the definition. `TopicTree` is its fast twin for many patterns and `TopicNames` for many
topics; tests prove them equal to it. Both expect names and patterns that were checked on input.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import zip_longest
from typing import Generic, TypeVar

from betimes.model.errors import TextError

BYTES_MAX = 65_535  # the limit of MQTT's two-byte length field
LEVELS_MAX = 128  # the limit of a walk down a tree
TOPICS_CACHED_MAX = 65_536
CACHED_TOPIC_LENGTH_MAX = 1_024  # so that a flood of long topics cannot fill the memory
CACHED_KEYS_MAX = 4_194_304  # likewise for topics with very many subscriptions

_SHARED = "$share/"
_SHOWN_LENGTH_MAX = 60
_FEW_KEYS = 8

Key = TypeVar("Key", bound=Hashable)


def check_topic_name(text: str) -> None:
    """Raise a TextError if a text is no topic name, that is, no client can publish to it."""
    _check_name(text, "topic name")


def check_topic_pattern(text: str) -> None:
    """Raise a TextError if a text is no topic pattern, that is, no client can subscribe to it."""
    _check_text(text, "topic pattern")
    if "+" not in text and "#" not in text:
        return
    start = 0
    for level in text.split("/"):
        for wildcard in "+#":
            if wildcard in level and level != wildcard:
                place = start + level.index(wildcard)
                problem = f"{wildcard} must be alone in its level"
                raise _wrong(text, place, problem, f"write a/{wildcard}, not a{wildcard}")
        if level == "#" and start + 1 < len(text):
            raise _wrong(text, start, "# must be the last level", "use + for one level in the middle")
        start += len(level) + 1


def shared_parts(pattern: str) -> tuple[str | None, str]:
    """Return the group and the inner pattern of a shared subscription; no group for an ordinary pattern.

    The returned pattern has been checked.

    >>> shared_parts("$share/workers/jobs/#"), shared_parts("jobs/#")
    (('workers', 'jobs/#'), (None, 'jobs/#'))
    """
    if not pattern.startswith(_SHARED):
        check_topic_pattern(pattern)
        return None, pattern
    group, slash, inner = pattern[len(_SHARED) :].partition("/")
    if not group or not inner:
        place = len(pattern) if slash and group else len(_SHARED)
        problem = "a shared subscription has a group, a slash and a pattern"
        raise _wrong(pattern, place, problem, "write $share/GROUP/PATTERN")
    _check_name(group, "group's name")
    check_topic_pattern(inner)
    return group, inner


def topic_matches(pattern: str, topic: str) -> bool:
    """Return whether a topic matches a pattern: the definition, MQTT 5 section 4.7.

    >>> topic_matches("a/+/c", "a/b/c"), topic_matches("a/#", "a"), topic_matches("#", "$SYS/load")
    (True, True, False)
    """
    if topic.startswith("$") and pattern.startswith(("+", "#")):
        return False
    for wanted, level in zip_longest(pattern.split("/"), topic.split("/")):
        if wanted == "#":
            return True
        if wanted is None or level is None or wanted not in ("+", level):
            return False
    return True


def patterns_overlap(one: str, other: str) -> bool:
    """Return whether some topic could match both patterns.

    >>> patterns_overlap("a/+", "+/b"), patterns_overlap("a/#", "b/#"), patterns_overlap("#", "$SYS/#")
    (True, False, False)
    """
    for first, second in ((one, other), (other, one)):
        if first.startswith("$") and second.startswith(("+", "#")):
            return False
    for levels in zip_longest(one.split("/"), other.split("/")):
        if "#" in levels:
            return True
        if levels[0] != levels[1] and (None in levels or "+" not in levels):
            return False
    return True


class _Node(Generic[Key]):
    """One level: the keys of exactly this level, and those of this and all below it."""

    __slots__ = ("below", "keys", "rest")

    def __init__(self) -> None:
        self.below: dict[str, _Node[Key]] | None = None
        self.keys: tuple[Key, ...] | dict[Key, None] = ()
        self.rest: tuple[Key, ...] | dict[Key, None] = ()


class TopicTree(Generic[Key]):
    """Keys under patterns: `match` finds those whose pattern a topic matches.

    A repeated topic costs one dictionary lookup. Another costs one lookup for the patterns without
    wildcards, which are in a dictionary too, and a walk over those with wildcards, level by level.
    """

    def __init__(self) -> None:
        self._exact: dict[str, tuple[Key, ...] | dict[Key, None]] = {}
        self._root: _Node[Key] = _Node()
        self._count = 0
        self._cache: dict[str, tuple[Key, ...]] = {}
        self._cached_keys = 0

    def __len__(self) -> int:
        """Return the number of pairs of pattern and key."""
        return self._count

    def add(self, pattern: str, key: Key) -> bool:
        """Add a key under a pattern; return whether it is new."""
        if "+" not in pattern and "#" not in pattern:
            held = self._exact.get(pattern, ())
            count = len(held)
            held = self._exact[pattern] = _with_key(held, key)
            self._forget(pattern)
        else:
            levels = pattern.split("/")
            rest = levels[-1] == "#"
            node = _node_made(self._root, levels[:-1] if rest else levels)
            count = len(node.rest if rest else node.keys)
            if rest:
                held = node.rest = _with_key(node.rest, key)
            else:
                held = node.keys = _with_key(node.keys, key)
            self._forget_all()
        added = len(held) - count
        self._count += added
        return bool(added)

    def remove(self, pattern: str, key: Key) -> bool:
        """Remove a key from a pattern; return whether it was there."""
        if "+" not in pattern and "#" not in pattern:
            held = self._exact.get(pattern, ())
            count = len(held)
            held = _without_key(held, key)
            if held:
                self._exact[pattern] = held
            else:
                self._exact.pop(pattern, None)
            removed = count - len(held)
            self._forget(pattern)
        else:
            removed = self._remove_from_tree(pattern, key)
        self._count -= removed
        return bool(removed)

    def match(self, topic: str) -> tuple[Key, ...]:
        """Return the keys whose pattern this topic matches: once for each such pattern."""
        found = self._cache.get(topic)
        return self._find(topic) if found is None else found

    def _find(self, topic: str) -> tuple[Key, ...]:
        found: list[Key] = list(self._exact.get(topic, ()))
        levels = topic.split("/")
        nodes = [self._root]
        if topic.startswith("$"):  # which no leading wildcard matches
            node = (self._root.below or {}).get(levels.pop(0))
            nodes = [] if node is None else [node]
        for level in levels:
            following: list[_Node[Key]] = []
            for node in nodes:
                if node.rest:
                    found.extend(node.rest)
                if node.below is not None:
                    if (below := node.below.get(level)) is not None:
                        following.append(below)
                    if (below := node.below.get("+")) is not None:
                        following.append(below)
            nodes = following
            if not nodes:
                break
        for node in nodes:
            found.extend(node.keys)
            found.extend(node.rest)
        result = tuple(found)
        if len(topic) <= CACHED_TOPIC_LENGTH_MAX:
            self._remember(topic, result)
        return result

    def _remove_from_tree(self, pattern: str, key: Key) -> int:
        levels = pattern.split("/")
        rest = levels[-1] == "#"
        path = _path_to(self._root, levels[:-1] if rest else levels)
        if path is None:
            return 0
        node = path[-1]
        count = len(node.keys) + len(node.rest)
        if rest:
            node.rest = _without_key(node.rest, key)
        else:
            node.keys = _without_key(node.keys, key)
        removed = count - len(node.keys) - len(node.rest)
        _prune(path, levels)
        self._forget_all()
        return removed

    def _remember(self, topic: str, result: tuple[Key, ...]) -> None:
        full = len(self._cache) >= TOPICS_CACHED_MAX
        if full or self._cached_keys + len(result) > CACHED_KEYS_MAX:
            self._forget_all()
        self._cache[topic] = result
        self._cached_keys += len(result)

    def _forget(self, topic: str) -> None:
        self._cached_keys -= len(self._cache.pop(topic, ()))

    def _forget_all(self) -> None:
        self._cache.clear()
        self._cached_keys = 0


class TopicNames:
    """A set of topic names, such as those with a retained message: `meeting` finds those of a pattern."""

    def __init__(self) -> None:
        self._root: _Node[str] = _Node()  # the key is the name
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: str) -> bool:
        path = _path_to(self._root, name.split("/"))
        return path is not None and bool(path[-1].keys)

    def add(self, name: str) -> bool:
        """Add a name; return whether it is new."""
        node = _node_made(self._root, name.split("/"))
        if node.keys:
            return False
        node.keys = (name,)
        self._count += 1
        return True

    def remove(self, name: str) -> bool:
        """Remove a name; return whether it was there."""
        levels = name.split("/")
        path = _path_to(self._root, levels)
        if path is None or not path[-1].keys:
            return False
        path[-1].keys = ()
        _prune(path, levels)
        self._count -= 1
        return True

    def meeting(self, pattern: str) -> list[str]:
        """Return the names that match a pattern, in no particular order."""
        nodes = [self._root]
        for wanted in pattern.split("/"):
            if wanted == "#":
                return _names_from(_open_levels(self._root) if self._root in nodes else nodes)
            following: list[_Node[str]] = []
            for node in nodes:
                if node.below is None:
                    continue
                if wanted == "+":
                    following += _open_levels(node) if node is self._root else node.below.values()
                elif (below := node.below.get(wanted)) is not None:
                    following.append(below)
            nodes = following
        return [name for node in nodes for name in node.keys]


def _node_made(root: _Node[Key], levels: list[str]) -> _Node[Key]:
    """Return the node at these levels; make it if there is none."""
    node = root
    for level in levels:
        if node.below is None:
            node.below = {}
        below = node.below.get(level)
        if below is None:
            below = node.below[level] = _Node()
        node = below
    return node


def _path_to(root: _Node[Key], levels: list[str]) -> list[_Node[Key]] | None:
    """Return the nodes from the root to these levels, or None if they end before."""
    path = [root]
    for level in levels:
        node = (path[-1].below or {}).get(level)
        if node is None:
            return None
        path.append(node)
    return path


def _prune(path: list[_Node[Key]], levels: list[str]) -> None:
    """Remove the empty nodes at the end of a path."""
    for number in range(len(path) - 1, 0, -1):
        if path[number].keys or path[number].rest or path[number].below:
            return
        above = path[number - 1]
        assert above.below is not None
        del above.below[levels[number - 1]]
        above.below = above.below or None


def _open_levels(root: _Node[str]) -> list[_Node[str]]:
    """Return the first levels that a leading wildcard matches."""
    return [node for level, node in (root.below or {}).items() if not level.startswith("$")]


def _names_from(nodes: list[_Node[str]]) -> list[str]:
    """Return the names at these nodes and below them."""
    found: list[str] = []
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        found.extend(node.keys)
        if node.below is not None:
            waiting.extend(node.below.values())
    return found


def _with_key(keys: tuple[Key, ...] | dict[Key, None], key: Key) -> tuple[Key, ...] | dict[Key, None]:
    # Most patterns have one key, and a tuple of one takes a fifth of a dictionary's memory.
    if isinstance(keys, tuple):
        if key in keys:
            return keys
        if len(keys) < _FEW_KEYS:
            return (*keys, key)
        keys = dict.fromkeys(keys)
    keys[key] = None
    return keys


def _without_key(keys: tuple[Key, ...] | dict[Key, None], key: Key) -> tuple[Key, ...] | dict[Key, None]:
    if isinstance(keys, tuple):
        return tuple(each for each in keys if each != key)
    keys.pop(key, None)
    return keys if len(keys) > _FEW_KEYS // 2 else tuple(keys)


def _check_name(text: str, what: str) -> None:
    _check_text(text, what)
    for wildcard in "+#":
        if wildcard in text:
            problem = f"a {what} has no {wildcard} in it"
            raise _wrong(text, text.index(wildcard), problem, "wildcards are for patterns")


def _check_text(text: str, what: str) -> None:
    if not text:
        raise _wrong(text, 0, f"a {what} cannot be empty", "write at least one letter")
    if "\0" in text:
        raise _wrong(text, text.index("\0"), f"a {what} has no U+0000 in it", "leave that letter out")
    if not text.isascii() or len(text) > BYTES_MAX:
        _check_bytes(text, what)
    if text.count("/") >= LEVELS_MAX:
        place = len("/".join(text.split("/", LEVELS_MAX)[:LEVELS_MAX]))
        raise _wrong(text, place, f"a {what} has at most {LEVELS_MAX} levels", "use fewer slashes")


def _check_bytes(text: str, what: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        problem = f"a {what} is Unicode text, and this is half a letter"
        raise _wrong(text, error.start, problem, "write it in UTF-8") from None
    if size > BYTES_MAX:
        problem = f"a {what} has at most {BYTES_MAX:,} bytes in UTF-8, and this has {size:,}"
        raise _wrong(text, len(text), problem, "make it shorter")


def _wrong(text: str, place: int, problem: str, hint: str) -> TextError:
    """Return the error, with a part of the text that fits a terminal or a reason string."""
    start = max(0, place - _SHOWN_LENGTH_MAX // 2)
    shown = text[start : start + _SHOWN_LENGTH_MAX]
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in shown)
    return TextError("…" + shown if start else shown, place - start + bool(start), problem, hint)
