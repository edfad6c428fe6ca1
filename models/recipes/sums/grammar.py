"""Sentences from templates, and the chance that chooses among them.

A template is a text with `{slot}`, filled from a scene, and `[one|other|third]`, of which one is taken; choices nest.
A scene binds a slot when it is first used, to a word of the list with the slot's name (without a digit at its end),
and keeps it: `{color1}` is the same colour everywhere and another one than `{color2}`.
"""
import random
import re


class Chance:
    """Draws from random.Random's random() alone: the only method whose sequence Python promises to keep."""

    def __init__(self, seed, stream):
        # One stream for each kind of text: more of one does not change the others.
        self.random = random.Random(seed * 1000003 + stream).random

    def below(self, n):
        return int(self.random() * n)

    def between(self, low, high):
        """A whole number from low to high, both included."""
        return low + self.below(high - low + 1)

    def choice(self, items):
        return items[self.below(len(items))]

    def happens(self, probability):
        return self.random() < probability


def parse(template):
    """The template as a list of texts, ("slot", name) and ("choice", [parsed, ...])."""
    parts, at = _parse_until(template, 0, "")
    assert at == len(template), template
    return parts


def _parse_until(template, at, ends):
    parts = []
    while at < len(template) and template[at] not in ends:
        if template[at] == "{":
            end = template.index("}", at)
            parts.append(("slot", template[at + 1:end]))
            at = end + 1
        elif template[at] == "[":
            options = []
            while template[at] != "]":
                option, at = _parse_until(template, at + 1, "|]")
                options.append(option)
            parts.append(("choice", options))
            at += 1
        else:
            end = at
            while end < len(template) and template[end] not in "{[" + ends:
                end += 1
            parts.append(template[at:end])
            at = end
    return parts, at


def fill(parts, scene, chance):
    """The text of a parsed template."""
    return "".join(_pieces(parts, scene, chance))


def _pieces(parts, scene, chance):
    for part in parts:
        if isinstance(part, str):
            yield part
        elif part[0] == "slot":
            yield str(scene[part[1]])
        else:
            yield from _pieces(chance.choice(part[1]), scene, chance)


class Scene(dict):
    """What the slots stand for."""

    def __init__(self, words, chance, **bound):
        super().__init__(bound)
        self.words = words
        self.chance = chance

    def __missing__(self, slot):
        words = self.words[slot.rstrip("123456789")]
        while (word := self.chance.choice(words)) in self.values():
            pass
        self[slot] = word
        return word


def polished(text):
    """With "an" where it belongs, "I", and a capital at the beginning of each sentence, also of one that is said. Behind
    `!"` and `?"` the sentence goes on."""
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    text = re.sub(r"\bi\b", "I", text)
    return re.sub(r'(^"?|[.!?] "?|\." "?|, ")([a-z])', lambda match: match[1] + match[2].upper(), text)
