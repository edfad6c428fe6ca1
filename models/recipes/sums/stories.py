"""Simple stories: a plot is a list of sections, a section a list of alternatives, and who and what is in the story stays
the same from its first sentence to its last."""
from grammar import Scene, fill, parse, polished
from words import BOYS, GIRLS, STORY_WORDS

OPENING = [
    "once upon a time there was a {size} {kind} [named|called] {A}. {he} lived in a {home} near the {place}.",
    "{A} was a {mood1} {kind}. {he} lived with {his} {relative1} in a {color1} {home}.",
    "one {weather} [morning|afternoon|day], a {kind} named {A} went to the {place}.",
    "it was a {weather} {season} day. {A}, a {mood1} {kind}, was [playing|walking|sitting] near the {place}.",
    "there once was a {mood1} {kind} whose name was {A}. every day {he} [walked|ran|went] to the {place}.",
    "in a {size} {home} by the {place} lived {A}. {he} was a {mood1} {kind} with a {color1} [hat|coat|scarf].",
]
ENDING = [
    "{A} and {F} [smiled|laughed] and went home together. it had been a good day.",
    "that night {A} slept well and dreamed of the {place}.",
    "from that day on, {A} and {F} were the best of friends.",
    "\"thank you, {F},\" said {A}. \"[you are a true friend|i will never forget this day|let us do it again soon].\"",
    "when the sun went down, {A} told {his} {relative1} about everything. {his} {relative1} was very proud.",
    "{A} learned that [it is good to ask for help|friends make hard things easy|it pays to be patient|a kind word can "
    "change a day].",
    "and every {season} after that, they met at the {place} again.",
]

LOST = [
    ["{A} had a {color2} {toy} that {he} loved very much.",
     "{his} [favorite|dearest] thing was a {color2} {toy} from {his} {relative2}."],
    ["one day the {toy} was gone. {he} looked under the bed and behind the door, but it was not there.",
     "but when {he} came home, {he} could not find the {toy} [anywhere|at all]. {A} felt sad and began to cry.",
     "the wind took the {toy} and carried it away over the {place}. \"oh no!\" cried {A}."],
    ["{his} friend {F} heard this and said, \"do not worry. we will look for it together.\"",
     "then {F} came by. \"why are you sad?\" asked {F}. \"i lost my {toy},\" said {A}."],
    ["they looked near the {tree}, behind the {home} and along the [path|river|fence]. they found a {treasure}, but no "
     "{toy}.", "they asked the {job} and they asked the old {animal1}, but nobody had seen it.",
     "first they found only a {treasure} and a {color3} {flower}. they did not give up."],
    ["at last they saw something {color2} in the grass. it was the {toy}!",
     "suddenly they heard a {noise}. a {animal2} was playing with the {toy}! the {animal2} was sorry and gave it back.",
     "{F} climbed the {tree} and looked around. there was the {toy}, high up on a branch."],
]
HELPING = [
    ["near the path {he} heard a {noise}. a {size} {animal1} was stuck [under a log|in the mud|in a bush].",
     "by the {tree} sat a {animal1} with a hurt [leg|foot|ear]. it looked cold and afraid."],
    ["\"please help me,\" said the {animal1}. \"i want to go home.\"",
     "{A} felt sorry for it. \"do not be afraid,\" {he} said, \"i will help you.\""],
    ["{he} pulled and pulled, but {he} was not strong enough. so {he} ran to get {F}.",
     "{he} did not know what to do, so {he} called {his} friend {F}, who lived in the next {home2}."],
    ["{F} brought a [rope|blanket|long stick] and some {food}. together they [worked|tried] until the {animal1} was "
     "free.", "{F} was very {mood2} and had an idea. they gave the {animal1} some {food} and a warm [bed|blanket]."],
    ["the {animal1} was so happy that it gave them a {color2} {treasure}.",
     "the next day the {animal1} came back with a basket of {fruit} to thank them.",
     "soon the {animal1} felt better and danced around the {tree}."],
]
COOKING = [
    ["{A} wanted to make a {food} for {his} {relative2}'s birthday.",
     "the {job} was ill and could eat nothing but {food}. \"i will make some,\" said {A}."],
    ["{he} took some {fruit}, a {color2} bowl and a big spoon. [soon|after a while] everything was ready.",
     "{he} washed the {fruit}, lit the fire and [stirred|cooked] for an hour."],
    ["but then there was a loud {noise}, and it all fell to the floor. what a mess!",
     "but {he} had taken salt for sugar, and it tasted awful.", "but {he} forgot the time, and all was black and hard."],
    ["{A} was angry and wanted to stop. \"try once more,\" said {F}, \"i will hold the bowl for you.\"",
     "{F} looked in through the window. \"may i help?\" {he2} asked. \"two can do more than one.\""],
    ["this time they were careful and did one thing after the other. it was perfect!",
     "they tried again, slowly, and it came out better than [ever|before]. they put a {flower} on the table."],
]
BUILDING = [
    ["{A} wanted to build a {toy} all by {selves}, because the market had none.",
     "{his} {relative2}'s old {toy} was broken. \"i can mend it,\" said {A}."],
    ["{he} found wood, paint and a long rope. {he} worked from morning until noon.",
     "{he} asked the {job} for [nails|glue|string] and a hammer and began."],
    ["but it did not look right at all. it was [too small|too heavy|crooked].",
     "then there was a {noise}, and it broke into two pieces."],
    ["\"this will never work,\" said {A} and sat down. \"let me see,\" said {F}. \"you hold it, and i pull.\"",
     "{F} came by with a basket of {fruit}. first they ate, and then they thought about it together."],
    ["the second time it worked. they painted it {color2} and put a {flower} on top.",
     "when evening came, the {toy} was ready, and even the {animal1} came to look at it."],
]
FEAR = [
    ["{A} was afraid of [the dark|deep water|the big dog next door|high places|thunder]. {he} never told anyone.",
     "all the others liked to swim in the [lake|river|sea], but {A} was afraid of the water."],
    ["one evening {F} asked {him} to come along to the {place2}. {A} did not want to, but {he} did not want to stay "
     "alone.", "\"come with me,\" said {F}. \"i was afraid too when i was {size}.\""],
    ["{his} heart beat fast. there was a {noise}, and {A} [jumped|closed {his} eyes|held on to {F}].",
     "they took one step, and then another. {A}'s legs [shook|felt weak]."],
    ["but it was only a {animal1} looking for {fruit}. {A} had to laugh.",
     "\"look up,\" {F} whispered. there were a thousand stars above the {place2}.",
     "{he} counted to ten and opened {his} eyes. nothing bad had happened."],
    ["now {A} felt {mood2} and brave. \"it is not so bad,\" {he} said.",
     "\"i did it!\" shouted {A}, and {F} clapped {his2} hands."],
]
GARDEN = [
    ["in {season}, {his} {relative2} gave {him} a small seed. \"plant it and wait,\" said {his} {relative2}.",
     "{A} found a seed [in the street|in {his} pocket|under the {tree}] and put it into the ground."],
    ["every morning {he} brought water. for a long time nothing [happened|could be seen].",
     "{he} looked at it every day, but there was only brown earth. {A} grew sad."],
    ["\"perhaps it is sleeping,\" said {F}. so they sang to it and told it about the {place}.",
     "{F} laughed at first, but then {he2} helped to keep the hungry {animal1} away."],
    ["then, one {weather} day, there was a green leaf. soon the plant was as tall as the {home}.",
     "after the rain a little stem came up, and then a {color2} {flower} opened."],
    ["it gave so many {fruit} that they could share them with everyone in the village.",
     "people came from the {place2} to see it, and the {job} made a song about it."],
]
RACE = [
    ["there was to be a race from the {tree} to the {place2}. {A} wanted to win more than anything.",
     "one day the {animal1} said, \"nobody is faster than i am.\" \"let us see,\" said {A}."],
    ["everyone came to watch: the {job}, the {animal2} and all of {his} friends.",
     "{F} showed {him} how to breathe and how to [start|jump]. they trained for a week."],
    ["at first {A} was in front. but then {he} saw that {F} had fallen over a stone.",
     "half way there, {he} heard a {noise}. {F} had fallen and could not get up."],
    ["{A} stopped and went back. \"you will lose!\" called the {animal1}. \"that does not matter,\" said {A}.",
     "should {he} go on? {A} turned around and helped {F} to stand."],
    ["they came in last, hand in hand, but everyone cheered for them.",
     "the {animal1} won the race, but it gave its prize, a {color2} {treasure}, to {A}."],
]
RAIN = [
    ["just then dark clouds came and it began to rain. {A} had no [coat|umbrella|hat].",
     "a storm came up, and the wind blew {his} {toy} into a [puddle|tree|ditch]."],
    ["{he} ran to the old {home2} and knocked. \"is anyone there?\" {he} called. it was {F} who opened the door.",
     "{he} hid under a {tree}. there sat {F}, as wet as a fish. they ran to the next {home2} together."],
    ["inside it was warm. {F} made tea and put some {food} on the table.",
     "they told each other stories about a {mood2} {animal1} and a {color2} {treasure} until the rain stopped."],
    ["when the sun came out, there was a rainbow over the {place}.",
     "after the rain the whole {place} smelled of {flower} and wet grass."],
]
SHARING = [
    ["{his} {relative2} gave {him} a basket of {fruit}. \"share them well,\" said {his} {relative2}.",
     "{A} had baked a {food} and it smelled wonderful. {he} wanted to eat it all alone."],
    ["on the way to the {place2} {he} met a hungry {animal1}. \"may i have a bite?\" it asked.",
     "then {F} came to the door. {F} had not eaten since the morning."],
    ["{A} thought about it for a while. then {he} gave away half of what {he} had.",
     "\"no,\" said {A}. \"it is mine.\" but when {he} sat alone, it did not taste good. so {he} went back and shared."],
    ["a little later they met the {job}, the {animal2} and a girl with a {toy}, and all of them got some.",
     "{F} brought some {fruit} too, and so there was more than before."],
    ["in the end the basket was empty, but nobody was hungry and everyone was happy.",
     "they sat in the grass, ate together and looked at the {color2} sky."],
]
PLOTS = [[[parse(text) for text in section] for section in [OPENING] + plot + [ENDING]]
         for plot in (LOST, HELPING, COOKING, BUILDING, FEAR, GARDEN, RACE, RAIN, SHARING)]

PRONOUNS = {"boy": ("he", "him", "his", "himself"), "girl": ("she", "her", "her", "herself")}


def story_scene(chance):
    scene = Scene(STORY_WORDS, chance)
    genders = [chance.choice(("boy", "girl")) for _ in range(2)]
    scene["A"] = chance.choice(BOYS if genders[0] == "boy" else GIRLS)
    while (friend := chance.choice(BOYS if genders[1] == "boy" else GIRLS)) == scene["A"]:
        pass
    scene["F"] = friend
    scene.update(zip(("he", "him", "his", "selves"), PRONOUNS[genders[0]]))
    scene.update(zip(("he2", "him2", "his2"), PRONOUNS[genders[1]]))
    # Heroes are children or animals.
    scene["kind"] = genders[0] if chance.happens(0.6) else scene["animal9"]
    return scene


def story(chance):
    """The text of one story, 60 to 150 words."""
    while True:
        scene = story_scene(chance)
        sections = chance.choice(PLOTS)
        text = polished(" ".join(fill(chance.choice(section), scene, chance) for section in sections))
        if 60 <= text.count(" ") + 1 <= 150:
            return text
