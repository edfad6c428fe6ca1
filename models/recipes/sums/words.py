"""The words that templates choose from, a list for each slot."""

BOYS = """Adam Ali Ben Bruno Carl Dan Eli Emil Felix Finn George Hugo Ian Ivan Jack Jim Kai Kofi Leo Luca Mark Max Milo
Nico Noah Omar Oscar Otto Paul Pete Ravi Sam Tariq Theo Tim Tom Victor Will Yusuf Zack""".split()
GIRLS = """Alma Amy Anna Aya Bella Clara Daisy Dora Ella Emma Eva Fay Grace Hana Ida Iris Jane Julia Kate Lara Leila
Lily Lucy Maria Mei Mia Molly Nadia Nina Nora Olga Pia Rosa Ruth Sara Sofia Tara Uma Vera Zoe""".split()

FOODS = """apples pears plums cherries grapes lemons peaches figs nuts cookies muffins buns pies pancakes carrots
tomatoes potatoes olives berries dates eggs sandwiches candies bananas oranges""".split()
TOYS = """marbles stickers coins cards beads buttons pencils crayons books stamps shells stones toys balls dolls
blocks kites ribbons tickets postcards balloons keys rings bottles photos feathers flags brushes puzzles""".split()
ANIMALS = """birds ducks sheep cows frogs fish bees horses goats hens rabbits ants geese cats dogs pigs squirrels
butterflies turtles crabs""".split()
PLANTS = "roses trees tulips cabbages bushes daisies onions pumpkins beans lilies".split()
# Plural and singular where -s is not the whole difference.
IRREGULAR = {"cherries": "cherry", "berries": "berry", "candies": "candy", "peaches": "peach",
             "tomatoes": "tomato", "potatoes": "potato", "sandwiches": "sandwich", "brushes": "brush"}


def singular(plural):
    return IRREGULAR.get(plural, plural[:-1])


PROBLEM_WORDS = {
    "name": BOYS + GIRLS, "foods": FOODS, "things": TOYS + FOODS, "others": TOYS + ANIMALS,
    "animals": ANIMALS, "plants": PLANTS,
    "color": "red blue green yellow white black brown orange purple pink gray golden".split(),
    "box": "box bag basket jar drawer bowl bucket sack crate tin".split(),
    "field": "field garden pond yard park barn meadow forest valley farm".split(),
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "weather": "sunny cold windy warm rainy cloudy hot foggy quiet".split(),
}

# (present, past)
VERBS = {
    "has": ("has", "had"), "have": ("have", "had"), "is": ("is", "was"), "are": ("are", "were"),
    "does": ("does", "did"), "do": ("do", "did"), "gives": ("gives", "gave"), "hands": ("hands", "handed"),
    "brings": ("brings", "brought"), "sends": ("sends", "sent"), "loses": ("loses", "lost"),
    "sells": ("sells", "sold"), "breaks": ("breaks", "broke"), "eats": ("eats", "ate"), "buys": ("buys", "bought"),
    "finds": ("finds", "found"), "gets": ("gets", "got"), "come": ("come", "came"), "arrive": ("arrive", "arrived"),
    "leave": ("leave", "left"), "go": ("go", "went"), "run": ("run", "ran"), "needs": ("needs", "needed"),
    "holds": ("holds", "held"), "costs": ("costs", "cost"), "reads": ("reads", "read"), "likes": ("likes", "liked"),
    "picks": ("picks", "picked"), "takes": ("takes", "took"), "keeps": ("keeps", "kept"), "pays": ("pays", "paid"),
    "lives": ("lives", "lived"), "walks": ("walks", "walked"), "bakes": ("bakes", "baked"),
}

STORY_WORDS = {
    "color": "red blue green yellow white black brown orange purple pink silver golden gray crimson striped".split(),
    "animal": """fox rabbit bear mouse squirrel frog duck owl hedgehog kitten puppy lamb turtle otter beaver goat pony
        donkey sparrow robin badger crow deer goose hen mole pig raccoon seal snail swan toad wolf""".split(),
    "size": "little small tiny".split(),
    "mood": """happy kind curious brave gentle clever cheerful quiet friendly careful shy proud patient lively honest
        polite dreamy""".split(),
    "toy": """ball kite doll boat drum train bear robot puzzle whistle wagon puppet book flute lantern bell sled
        guitar castle compass mask telescope trumpet windmill""".split(),
    "food": "cake pie pudding soup salad stew tart".split(),
    "fruit": """apples pears plums cherries berries grapes peaches nuts oranges lemons carrots melons tomatoes figs
        pumpkins mushrooms""".split(),
    "place": """forest park garden village beach meadow river hill farm market lake valley orchard pond harbor
        castle bridge island mountain field library station""".split(),
    "home": "house cottage hut cabin tent barn tower cave mill wagon".split(),
    "weather": "sunny windy cloudy warm cold bright misty quiet snowy hot fresh gray".split(),
    "season": "spring summer autumn winter".split(),
    "relative": """mother father grandmother grandfather aunt uncle sister brother cousin teacher neighbor
        godmother""".split(),
    "tree": "oak willow pine birch maple chestnut elm fir cedar".split(),
    "treasure": """shell stone feather coin key button leaf pearl ribbon map ring candle spoon letter crown
        marble""".split(),
    "job": """baker farmer painter fisher tailor gardener doctor sailor miller potter carpenter shepherd postman
        singer hunter cook""".split(),
    "noise": "splash crash bang rustle whisper squeak howl knock rumble buzz crack thump hiss cry".split(),
    "flower": "rose tulip daisy lily sunflower poppy violet bluebell iris marigold".split(),
}
