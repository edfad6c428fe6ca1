"""Word problems and lines of arithmetic, with their solutions.

A kind of problem has facts (sentences in order; `any_order` where they may be swapped), questions, and steps: the
equations of the solution, in which x, y, z are the numbers of the problem and r the result of the step before. A sum's
numbers stand in its equation as in the text: one problem, one solution to learn. Numbers are 2 or more, so that
"apples" is always right, and results are never negative.
"""
import re
import zlib

from grammar import Scene, fill, parse, polished
from words import BOYS, GIRLS, PROBLEM_WORDS, VERBS, singular

HELDOUT_PARTS = 20  # one combination of name and numbers in so many is kept for held-out sets
NAMES = set(BOYS + GIRLS)

HAS = "{A} {has} {x} {things}."
OTHER_HAS = "{B} {has} {y} {things}."
GAINS = ["{B} {gives} {him} {y} more.", "{B} {hands} {him} {y} more {things}.", "then {he} {finds} {y} more.",
         "{his} [mother|father|aunt|uncle|teacher] {brings} {him} {y} more.", "{he} {buys} {y} more {things}.",
         "{B} {sends} {y} more {things} to {him}.", "on {day1} {he} {gets} {y} more {things}."]
LOSSES = ["{he} {gives} {y} of them to {B}.", "{he} {loses} {y} of them.", "{he} {sells} {y} {things}.",
          "{he} {hands} {y} of the {things} to {B}.", "{B} {takes} {y} of them.", "then {he} {sends} {y} {things} to {B}."]
HAVE_NOW = ["how many {things} {does} {A} have [now|then|in the end]?", "how many {things} {has_now}?"]
HAVE_LEFT = ["how many {things} {does} {A} have left?", "how many {things} {are} left?",
             "how many {things} {does} {A} keep?"]
BOXES = ["{A} {has} {x} {boxes}.", "{A} {buys} {x} {boxes}.", "{A} {finds} {x} {boxes}."]
EACH_BOX = ["each {box} {holds} {y} {things}.", "there {are} {y} {things} in each {box}.",
            "{y} {things} {are} in every {box}."]
TOGETHER = ["how many {things} {do} {A} and {B} have together?", "how many {things} {do} they have in all?",
            "how many {things} {do} the two have altogether?"]


def z(templates):
    """The same sentences about the third number."""
    return [template.replace("{y}", "{z}") for template in templates]


def kind(facts, questions, *steps, any_order=False):
    listed = [[fact] if isinstance(fact, str) else fact for fact in facts]
    questions = [questions] if isinstance(questions, str) else questions
    return {"facts": [[parse(variant) for variant in fact] for fact in listed],
            "questions": [parse(question) for question in questions], "steps": steps, "any_order": any_order}


ONE_STEP = [
    kind([HAS, GAINS], HAVE_NOW, "x + y"),
    kind(["there {are} {x} {animals} in the {field}.",
          ["{y} more {come}.", "{y} more {animals} {arrive}.", "then {y} other {animals} {come}."]],
         ["how many {animals} {are} there [now|then]?", "how many {animals} {are} in the {field} in the end?"], "x + y"),
    kind([HAS, OTHER_HAS], TOGETHER, "x + y"),
    kind([["{A} {reads} {x} pages on {day1}.", "on {day1} {A} {reads} {x} pages."],
          ["on {day2} {he} {reads} {y} pages.", "{he} {reads} {y} pages on {day2}."]],
         ["how many pages {does} {A} read in all?", "how many pages {is} that altogether?"], "x + y"),
    kind(["a {box} {holds} {x} {color1} {things} and {y} {color2} {things}."],
         ["how many {things} {are} in the {box}?", "how many {things} {is} that in all?"], "x + y"),
    kind([HAS, "{B} {has} {y} more {things} than {A}."], "how many {things} {does} {B} have?", "x + y"),
    kind([["{A} {gives} {x} {things} away.", "{A} {loses} {x} {things}.", "{A} {sells} {x} {things}."],
          "[then|after that] {he} {has} {y} {things} left."], "how many {things} did {A} have at first?", "x + y"),
    kind([HAS, LOSSES], HAVE_LEFT, "x - y"),
    kind([["{A} {has} {x} {foods}.", "{A} {bakes} {x} buns.", "{A} {picks} {x} berries."],
          ["{he} {eats} {y} of them.", "{B} {eats} {y} of them."]], ["how many {are} left?",
         "how many of them {are} still there?"], "x - y"),
    kind(["there {are} {x} {animals} in the {field}.",
          ["{y} of them {leave}.", "{y} of the {animals} {run} away.", "then {y} of them {go} home."]],
         ["how many {animals} {are} left?", "how many {animals} {are} still in the {field}?"], "x - y"),
    kind([HAS, OTHER_HAS], ["how many more {things} {does} {A} have than {B}?",
                            "how many fewer {things} {does} {B} have than {A}?"], "x - y", any_order=True),
    kind([HAS, "{B} {has} {y} fewer {things} than {A}."], "how many {things} {does} {B} have?", "x - y"),
    kind(["{A} {needs} {x} {things}.", ["{he} {has} {y} {things}.", "{he} {has} only {y} of them."]],
         ["how many more {things} {does} {A} need?", "how many {things} {are} missing?"], "x - y"),
    kind([HAS, "{y} of them {are} {color1} and the others {are} {color2}."],
         ["how many {things} {are} {color2}?", "how many {color2} {things} {does} {A} have?"], "x - y"),
    kind([["a book {has} {x} pages.", "{A} {has} a book of {x} pages."], "{A} {reads} {y} pages of it."],
         ["how many pages {are} left?", "how many pages {does} {A} still have to read?"], "x - y"),
    kind([BOXES, EACH_BOX], "how many {things} {does} {A} have [in all|altogether|in total]?", "x * y"),
    kind([["one {thing} {costs} {y} coins.", "a {thing} {costs} {y} coins."], "{A} {buys} {x} {things}."],
         ["how many coins {does} {A} pay?", "how many coins {is} that in all?"], "x * y", any_order=True),
    kind([["{A} {reads} {y} pages every day.", "every day {A} {reads} {y} pages."]],
         ["how many pages {does} {A} read in {x} days?", "how many pages {is} that in {x} days?"], "x * y"),
    kind(["there {are} {x} rows of {plants} in the garden.",
          ["each row {has} {y} {plants}.", "there {are} {y} {plants} in each row."]],
         ["how many {plants} {are} in the garden?", "how many {plants} {are} there in all?"], "x * y"),
]
TWO_STEPS = [
    kind([HAS, GAINS, z(LOSSES)], HAVE_LEFT, "x + y", "r - z"),
    kind([HAS, LOSSES, z(GAINS)], HAVE_NOW, "x - y", "r + z"),
    kind([HAS, LOSSES, z(LOSSES)], HAVE_LEFT, "x - y", "r - z"),
    kind([HAS, GAINS, z(GAINS)], HAVE_NOW, "x + y", "r + z"),
    kind([HAS, OTHER_HAS, "{C} {has} {z} {things}."],
         ["how many {things} {do} the three have together?", "how many {things} {is} that in all?"],
         "x + y", "r + z"),
    kind(["there {are} {x} {animals} in the {field}.", ["{y} more {come}.", "{y} more {arrive}."],
          ["{z} of them {leave}.", "then {z} of the {animals} {go} home."]],
         ["how many {animals} {are} left?", "how many {animals} {are} in the {field} [now|then]?"],
         "x + y", "r - z"),
    kind([BOXES, EACH_BOX, z(GAINS)], HAVE_NOW, "x * y", "r + z"),
    kind([BOXES, EACH_BOX, z(LOSSES)], HAVE_LEFT, "x * y", "r - z"),
    kind([HAS, "{B} {has} {y} more {things} than {A}."], TOGETHER, "x + y", "x + r"),
    kind([HAS, "{B} {has} {y} fewer {things} than {A}."], TOGETHER, "x - y", "x + r"),
    kind(["one {thing} {costs} {y} coins.", "{A} {buys} {x} {things}.", "{he} {pays} with {z} coins."],
         ["how many coins {does} {A} get back?", "how many coins {does} {he} get back?"], "x * y", "z - r"),
]

# Sentences that have nothing to do with the question, some with a number {n}.
DISTRACTORS = [parse(template) for template in [
    "it {is} a {weather} day.", "{A} {likes} {color3} {others}.", "{A} {is} {n} years old.", "{C} {has} {n} {others}.",
    "{A} {lives} near a {field}.", "there {are} {n} {others} outside.", "{A} and {C} {are} friends.",
    "{C} {walks} by.", "the house of {A} {has} {n} windows."]]

VERB_SLOTS = [{name: forms[tense] for name, forms in VERBS.items()} for tense in (0, 1)]
QUESTION_FIRST = 0.1  # share of problems that begin with their question


def problem_scene(chance):
    boys = chance.happens(0.5)
    name = chance.choice(BOYS if boys else GIRLS)
    scene = Scene(PROBLEM_WORDS, chance, A=name, he="he" if boys else "she", him="him" if boys else "her",
                  his="his" if boys else "her")
    scene.update(B=scene["name1"], C=scene["name2"])
    scene.update(VERB_SLOTS[chance.below(2)])
    scene["has_now"] = scene["does"] + " " + name + " have"
    scene["thing"] = singular(scene["things"])
    scene["boxes"] = scene["box"] + ("es" if scene["box"].endswith("x") else "s")
    return scene


def solve(steps, numbers):
    """The equations' lines, the result, and the lowest and the highest number on the way."""
    values, lines, met = dict(numbers), [], list(numbers.values())
    for step in steps:
        left, sign, right = step.split()
        a, b = values[left], values[right]
        values["r"] = a + b if sign == "+" else a - b if sign == "-" else a * b
        met.append(values["r"])
        lines.append(f"{a} {sign} {b} = {values['r']}")
    return lines, values["r"], min(met), max(met)


def draw_numbers(steps, chance, difficulty):
    """x, y and z such that no number of the solution is below 0 or above the largest."""
    small = chance.happens(difficulty.small)
    largest = min(difficulty.largest, 20) if small else difficulty.largest
    factor = min(difficulty.largest_factor, 5) if small else difficulty.largest_factor
    is_product = steps[0] == "x * y"
    while True:
        high = factor if is_product else largest
        numbers = {"x": chance.between(2, high), "y": chance.between(2, high), "z": chance.between(2, largest)}
        if len(steps) == 1:
            del numbers["z"]
        lines, result, lowest, highest = solve(steps, numbers)
        if lowest >= 0 and highest <= (max(largest, factor * factor) if is_product else largest):
            return numbers, lines, result


def is_heldout(prompt):
    """Whether a problem may only be in the held-out set: decided by the first person's name and the numbers, in any order,
    and by nothing else. So the training set of no seed ever holds a problem of any seed's held-out set."""
    name = next((word for word in re.findall(r"[A-Z][a-z]+", prompt) if word in NAMES), "nobody")
    numbers = sorted(int(number) for number in re.findall(r"[0-9]+", prompt))
    return zlib.crc32(f"{name} {numbers}".encode()) % HELDOUT_PARTS == 0


def problem_text(kind_, scene, chance, difficulty):
    facts = [fill(chance.choice(variants), scene, chance) for variants in kind_["facts"]]
    if kind_["any_order"] and chance.happens(0.5):
        facts.reverse()
    question = fill(chance.choice(kind_["questions"]), scene, chance)
    if chance.happens(difficulty.distractors):
        scene["n"] = chance.between(3, min(12, difficulty.largest))
        # At an end, where no "he" of the next sentence can mean someone else.
        facts.insert(chance.choice([0, len(facts)]), fill(chance.choice(DISTRACTORS), scene, chance))
    sentences = [question] + facts if chance.happens(QUESTION_FIRST) else facts + [question]
    return polished(" ".join(sentences))


def word_problem(chance, difficulty, heldout):
    """A problem of the training or of the held-out set: prompt, answer, result."""
    kind_ = chance.choice(TWO_STEPS if chance.happens(difficulty.two_steps) else ONE_STEP)
    while True:
        scene = problem_scene(chance)
        numbers, lines, result = draw_numbers(kind_["steps"], chance, difficulty)
        scene.update(numbers)
        prompt = problem_text(kind_, scene, chance, difficulty)
        if is_heldout(prompt) == heldout:
            return {"prompt": prompt, "answer": "\n".join(lines + [f"#### {result}"]), "result": result}


def arithmetic(chance, difficulty):
    """One line: `17 + 25 =` and `42`. Here 0 and 1 occur too."""
    sign = chance.choice("++--*")
    if sign == "*":
        a, b = chance.between(0, difficulty.largest_factor), chance.between(0, difficulty.largest_factor)
        result = a * b
    else:
        # A sum is drawn first, or large ones would be rare; a difference is a sum read backwards.
        result = chance.between(0, difficulty.largest)
        a = chance.between(0, result)
        b = result - a
        if sign == "-":
            a, result = result, a
    return {"prompt": f"{a} {sign} {b} =", "answer": str(result)}
