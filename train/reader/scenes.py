"""Made facts with several wordings each: doses of two arms, duties of two parties, steps, bounds, conditions, exceptions.

Real text rarely states such facts twice in other words. A scene draws a fact, states it in one wording as the passage and
takes other wordings as true claims; false claims exchange, merge, drop or invert exactly one part of the fact. All wordings
come from the same structure, so the labels are sure. A scene returns (sentences, true claims, false claims with labels).
"""

from edits import CONTRADICTED, NEUTRAL, pick, sentence_case
from words import NUMBER_WORDS, inflect


def cap(s):
    return sentence_case(" ".join(s.split()))


def number(rng, lo, hi):
    return rng.randrange(lo, hi + 1)


def spell(n, rng):
    return NUMBER_WORDS[n] if n <= 12 and rng.random() < 0.4 else str(n)


def two(rng, lo, hi):
    a = number(rng, lo, hi)
    b = number(rng, lo, hi)
    while b == a:
        b = number(rng, lo, hi)
    return a, b


# ---------------------------------------------------------------- two arms with a value each

ARMS = [  # (groups, plural verb, what, values)
    (["adults", "children", "teenagers", "people over 65", "pregnant women", "infants"], "take", "dose", ["50 mg", "100 mg", "200 mg", "400 mg", "600 mg", "one tablet", "two tablets", "5 ml", "10 ml", "2.5 ml", "a half tablet"]),
    (["members", "non-members", "students", "pensioners", "visitors", "residents"], "pay", "fee", ["$5", "$8", "$12", "$20", "€3", "€7.50", "€15", "nothing", "half the price", "the full price", "£4", "£9"]),
    (["full-time employees", "part-time employees", "apprentices", "managers", "contractors", "temporary staff", "trainees"], "get", "annual leave", ["20 days", "25 days", "30 days", "12 days", "28 days", "15 days", "22 days"]),
    (["landlords", "tenants", "employers", "employees", "subscribers", "lodgers"], "give", "notice period", ["two weeks' notice", "four weeks' notice", "one month's notice", "three months' notice", "60 days' notice", "seven days' notice"]),
    (["economy passengers", "business passengers", "children under two", "crew members", "first-class passengers"], "carry", "baggage allowance", ["one bag of 8 kg", "two bags of 23 kg", "one bag of 23 kg", "10 kg", "32 kg", "three bags"]),
    (["free accounts", "paid accounts", "team accounts", "trial accounts", "enterprise accounts"], "store", "limit", ["2 GB", "5 GB", "50 GB", "1 TB", "500 files", "10,000 files", "100 MB"]),
    (["readers", "writers", "reviewers", "administrators", "guests", "editors"], "stay signed in for", "session length", ["15 minutes", "one hour", "eight hours", "30 days", "two weeks"]),
    (["cats", "dogs", "rabbits", "puppies", "kittens", "hamsters"], "eat", "ration", ["80 g", "150 g", "300 g", "one cup", "two cups", "half a tin", "20 g"]),
    (["cars", "lorries", "buses", "motorcycles", "caravans", "tractors"], "drive at", "speed limit", ["80 km/h", "100 km/h", "130 km/h", "60 km/h", "50 km/h", "40 km/h"]),
    (["doctors", "nurses", "porters", "surgeons", "interns", "pharmacists"], "work", "weekly hours", ["38 hours", "40 hours", "42 hours", "35 hours", "48 hours", "30 hours"]),
    (["backups", "log files", "invoices", "drafts", "deleted messages", "audit records"], "last", "retention period", ["7 days", "30 days", "90 days", "one year", "ten years", "six months"]),
    (["men", "women", "boys", "girls", "veterans", "juniors"], "run", "distance", ["5 km", "10 km", "800 m", "1,500 m", "3 km", "400 m", "a half marathon"]),
]


def arms(rng):
    groups, verb, what, values = pick(rng, ARMS)
    a, b, c = rng.sample(groups, 3)
    x, y, z = rng.sample(values, 3)
    said = pick(rng, [f"{a} {verb} {x} and {b} {verb} {y}.", f"{a} {verb} {x}, while {b} {verb} {y}.", f"{a} {verb} {x}; {b} {verb} {y}.", f"the {what} is {x} for {a} and {y} for {b}.", f"{a} {verb} {x}, {b} {y}.", f"the {what} for {a} is {x}, and for {b} it is {y}.", f"{a} {verb} {x}. {b.capitalize()} {verb} {y}.", f"{what}: {x} ({a}), {y} ({b})."])
    third = [] if rng.random() < 0.6 else [cap(f"{c} {verb} {z}.")]
    true = [f"{a} {verb} {x}.", f"{b} {verb} {y}.", f"the {what} for {b} is {y}.", f"the {what} is {y} for {b} and {x} for {a}.", f"for {a}, the {what} is {x}.", f"{b} {verb} {y} and {a} {verb} {x}.", f"{x} is the {what} for {a}.", f"{a} do not {verb} {y}, {b} do."]
    false = [(f"{a} {verb} {y}.", CONTRADICTED), (f"{b} {verb} {x}.", CONTRADICTED), (f"{a} and {b} {verb} {x}.", CONTRADICTED), (f"{a} and {b} {verb} {y}.", CONTRADICTED), (f"both {b} and {a} {verb} {y}.", CONTRADICTED), (f"the {what} is {y} for {a} and {x} for {b}.", CONTRADICTED), (f"the {what} for {a} is {y}.", CONTRADICTED), (f"{b} do not {verb} {y}, {a} do.", CONTRADICTED)]
    if not third:
        false.append((f"{c} {verb} {x}.", NEUTRAL))
        false.append((f"the {what} for {c} is {y}.", NEUTRAL))
    return [cap(said)] + third, true, false


DRUGS = "ibuprofen,metformin,zolastat,aspirin,venatrol,lorazine,cetirin,drug A,the new vaccine,the higher dose,acupuncture,the ointment,early surgery,the exercise programme,the spray,physiotherapy".split(",")
OUTCOMES = [("improved", "improvement"), ("recovered", "recovery"), ("relapsed", "a relapse"), ("developed a rash", "a rash"), ("had headaches", "headaches"), ("reported nausea", "nausea"), ("stopped smoking", "giving up smoking"), ("were free of pain", "freedom from pain"), ("dropped out", "dropping out"), ("needed a second operation", "a second operation"), ("had side effects", "side effects"), ("slept better", "better sleep")]


def trial(rng):
    drug, other = rng.sample(DRUGS, 2)
    if rng.random() < 0.5:
        other = "the placebo"
    did, event = pick(rng, OUTCOMES)
    total = pick(rng, [20, 25, 40, 50, 60, 80, 100, 120, 150, 200])
    n, m = two(rng, 2, total - 2)
    said = pick(rng, [f"{n} of {total} patients {did} with {drug} and {m} of {total} with {other}.", f"with {drug}, {n} of {total} patients {did}, compared with {m} of {total} with {other}.", f"of the {total} patients given {drug}, {n} {did}; of the {total} given {other}, {m} did.", f"{n} of {total} participants on {drug} {did}. In the group on {other} it was {m} of {total}.", f"in the {drug} group {n} of {total} patients {did}, against {m} of {total} in the group on {other}."])
    more, less = (drug, other) if n > m else (other, drug)
    true = [f"with {drug}, {n} of {total} patients {did}.", f"{m} of {total} patients {did} with {other}.", f"more patients {did} with {more} than with {less}.", f"fewer patients {did} with {less} than with {more}.", f"of the patients on {other}, {m} {did}."]
    false = [(f"with {drug}, {m} of {total} patients {did}.", CONTRADICTED), (f"{n} of {total} patients {did} with {other}.", CONTRADICTED), (f"more patients {did} with {less} than with {more}.", CONTRADICTED), (f"fewer patients {did} with {more} than with {less}.", CONTRADICTED), (f"with {drug} and with {other}, {n} of {total} patients {did}.", CONTRADICTED), (f"all patients on {drug} {did}.", CONTRADICTED), (f"of the patients on {other}, {n} {did}.", CONTRADICTED)]
    return [cap(said)], true, false


def side_effects(rng):
    a, b = rng.sample(DRUGS, 2)
    effects = ["nausea", "headaches", "dizziness", "a dry mouth", "insomnia", "a rash", "tiredness", "fever", "swelling", "weight gain"]
    x, y = rng.sample(effects, 2)
    n, m = two(rng, 2, 60)
    said = pick(rng, [f"{a} caused {x} in {n} of 100 people and {b} caused {y} in {m} of 100.", f"{a} led to {x} in {n} percent of cases, {b} to {y} in {m} percent.", f"people who took {a} reported {x}; those who took {b} reported {y}.", f"{a} can cause {x}, whereas {b} can cause {y}."])
    true = [f"{x} was reported with {a}.", f"{y} was reported with {b}.", f"{a} was linked to {x} and {b} to {y}.", f"{b} was linked to {y}, {a} to {x}."]
    false = [(f"{x} was reported with {b}.", NEUTRAL), (f"{y} was reported with {a}.", NEUTRAL), (f"{a} and {b} were linked to {x}.", NEUTRAL), (f"{a} was linked to {y} and {b} to {x}.", CONTRADICTED), (f"both {b} and {a} were linked to {y}.", NEUTRAL), (f"{a} was linked to {x} and {y}.", NEUTRAL)]
    return [cap(said)], true, false


# ---------------------------------------------------------------- duties between two parties

PARTIES = [p.split("/") for p in "the landlord/the tenant,the buyer/the seller,the lender/the borrower,the employer/the employee,the client/the contractor,the insurer/the policyholder,the carrier/the shipper,the school/the parents,the publisher/the author,the museum/the artist,the club/the player,the hospital/the supplier,the owner/the manager,the agency/the model,the server/the client,the parent process/the child process,the sender/the recipient,the licensor/the licensee,the bank/the customer,the council/the builder,the committee/the applicant,Anna Berg/Tom Weaver,Harlow Ltd/Northgate plc,the coach/the captain,the editor/the reviewer".split(",")]
TRANSFERS = [  # (verb, participle, things)
    ("pay", ["a deposit of $500", "the rent", "a fee of 3 percent", "damages", "the travel costs", "a bonus", "a monthly allowance"]), ("send", ["a written notice", "the signed contract", "a receipt", "the report", "an invoice", "a confirmation", "a copy of the key"]), ("give", ["two copies of the agreement", "access to the archive", "a written warning", "the final accounts", "a list of the defects", "a certificate"]),
    ("lend", ["the tools", "a car", "200,000 dollars", "the equipment"]), ("owe", ["an apology", "three months' wages", "an explanation", "6,000 euros"]), ("offer", ["a discount", "a new contract", "a refund", "a second chance", "training"]), ("show", ["the documents", "the test results", "the source of the funds"]), ("grant", ["an exclusive licence", "an extension", "a right of appeal", "a loan"]), ("sell", ["the land", "the patents", "its shares", "the old boat"]), ("return", None),
]


def duty(rng):
    a, b = pick(rng, PARTIES)
    if rng.random() < 0.5:
        a, b = b, a
    verb, things = pick(rng, TRANSFERS[:-1])
    thing = pick(rng, things)
    base, third, _, past, part = inflect(verb)
    term = pick(rng, ["", "", f" within {number(rng, 5, 60)} days", f" every {pick(rng, ['month', 'year', 'week'])}", " before the end of the year", " on request"])
    modal = pick(rng, ["", "must ", "may ", "will "])
    v = modal + base if modal else third
    recv = {"pay": "receive", "send": "receive", "give": "receive", "lend": "borrow", "offer": None, "owe": None, "show": "see", "grant": "obtain", "sell": "buy"}[verb]
    passive = f"{modal}be {part}" if modal else f"is {part}"
    forms = lambda p, q: [f"{p} {v} {q} {thing}{term}.", f"{p} {v} {thing} to {q}{term}.", f"{q} {passive} {thing} by {p}{term}."] + ([f"{q} {modal + recv if modal else inflect(recv)[1]} {thing} from {p}{term}."] if recv and verb not in ("show",) else [])
    said = pick(rng, forms(a, b)[:3])
    return [cap(said)], forms(a, b), [(f, CONTRADICTED if modal != "may " else NEUTRAL) for f in forms(b, a)]


PEOPLE = "Maria Lopez,John Hartley,Ines Duarte,Peter Novak,Aisha Khan,Lars Nilsen,Grace Okoro,Henry Walsh,Mei Tanaka,Paul Roth,Clara Weiss,Omar Haddad,Judith Moran,Victor Hale".split(",")
FIRMS = "Harlow Ltd,Northgate,Brightwell,Castor Systems,Delmar Foods,Orion Press,Ventura Mills,Kestrel Air,Lumen Labs,Redfield Bank,Tidewater,Alder & Sons".split(",")
RELATIONS = [("acquired", "was acquired by", FIRMS), ("sued", "was sued by", FIRMS), ("founded", None, None), ("replaced", "was replaced by", PEOPLE), ("hired", "was hired by", PEOPLE), ("taught", "was taught by", PEOPLE), ("defeated", "was defeated by", PEOPLE), ("interviewed", "was interviewed by", PEOPLE), ("succeeded", "was succeeded by", PEOPLE), ("outbid", "was outbid by", FIRMS), ("accused", "was accused by", PEOPLE), ("recommended", "was recommended by", PEOPLE), ("supplied", "was supplied by", FIRMS), ("rescued", "was rescued by", PEOPLE), ("criticised", "was criticised by", PEOPLE), ("painted a portrait of", None, PEOPLE), ("works for", None, None), ("overtook", "was overtaken by", FIRMS), ("invested in", None, FIRMS), ("reported to", None, PEOPLE)]


def relation(rng):
    verb, passive, pool = pick(rng, [r for r in RELATIONS if r[2]])
    a, b, c = rng.sample(pool, 3)
    when = pick(rng, ["", f" in {number(rng, 1950, 2023)}", f" in {pick(rng, ['March', 'June', 'October'])}", " last year"])
    forms = lambda p, q: [f"{p} {verb} {q}{when}."] + ([f"{q} {passive} {p}{when}.", f"{when[1:] + ', ' if when else ''}{q} {passive} {p}."] if passive else [f"{when[1:] + ', ' if when else ''}{p} {verb} {q}."])
    sentences = [cap(pick(rng, forms(a, b)))]
    if rng.random() < 0.4:
        sentences.append(cap(f"{c} {pick(rng, ['was not involved', 'declined to comment', 'had supported the move', 'joined later'])}."))
    false = [(f, CONTRADICTED) for f in forms(b, a)] + [(f, NEUTRAL) for f in forms(c, b)]
    return sentences, forms(a, b), false


# ---------------------------------------------------------------- order of steps

STEPS = [
    "disconnect the mains,open the housing,remove the filter,clean the fan,replace the battery,close the cover,press the reset button,tighten the screws,wait for the motor to cool,drain the water",
    "back up the database,stop the service,run the migration,update the configuration,restart the server,clear the cache,notify the users,remove the old files,check the logs,rotate the keys",
    "sign the contract,pay the deposit,inspect the flat,collect the keys,register the address,read the meters,move in,insure the contents",
    "preheat the oven,mix the flour and butter,beat the eggs,add the sugar,chill the dough,roll out the dough,bake the base,let it cool,add the topping",
    "wash your hands,put on gloves,clean the wound,apply the ointment,change the dressing,check the temperature,take the tablet,measure the blood pressure",
    "open an account,confirm the address,upload the photo,choose a plan,enter the voucher code,invite your colleagues,install the client,verify the phone number",
    "fetch the changes,create a branch,edit the file,run the tests,commit the result,push the branch,open a pull request,merge the branch,delete the branch",
    "fasten the seat belts,dim the lights,close the doors,start the engines,release the brakes,retract the gear,inform the tower",
    "submit the application,attend the interview,provide references,accept the offer,complete the training,receive the badge,set up the laptop",
]


def past_participle(step):
    verb, _, rest = step.partition(" ")
    return inflect(verb)[4] + (" " + rest if rest else "")


def gerund(step):
    verb, _, rest = step.partition(" ")
    return inflect(verb)[2] + (" " + rest if rest else "")


def steps(rng):
    a, b, c = rng.sample(pick(rng, STEPS).split(","), 3)
    forms = lambda x, y: [f"before {gerund(y)}, {x}.", f"{x} before you {y}.", f"{x}, then {y}.", f"first {x}, then {y}.", f"after {gerund(x)}, {y}.", f"{y} only after you have {past_participle(x)}.", f"once you have {past_participle(x)}, {y}.", f"do not {y} until you have {past_participle(x)}.", f"{gerund(x)} comes before {gerund(y)}."]
    sentences = [cap(pick(rng, forms(a, b)))]
    if rng.random() < 0.4:
        sentences.append(cap(f"finally, {c}."))
    elif rng.random() < 0.3:
        sentences = [cap(f"1. {a}."), cap(f"2. {b}."), cap(f"3. {c}.")]
    return sentences, forms(a, b), [(f, CONTRADICTED) for f in forms(b, a)]


# ---------------------------------------------------------------- bounds

DEADLINES = [("the claim", "be filed", "the accident"), ("the goods", "be returned", "delivery"), ("the invoice", "be paid", "receipt"), ("the notice", "be answered", "its arrival"), ("the form", "be handed in", "the start of term"), ("the report", "be published", "the audit"), ("complaints", "be sent in", "the incident"), ("the sample", "be tested", "collection"), ("the password", "be changed", "the first login"), ("an appeal", "be lodged", "the decision"), ("the vehicle", "be inspected", "its registration"), ("refunds", "be requested", "the purchase"), ("the key", "be rotated", "its creation")]


def deadline(rng):
    what, action, event = pick(rng, DEADLINES)
    n, unit = number(rng, 3, 90), pick(rng, ["days", "days", "hours", "weeks", "months"])
    said = pick(rng, [f"{what} must {action} within {n} {unit} of {event}.", f"{what} must {action} no later than {n} {unit} after {event}.", f"{what} must {action} at most {n} {unit} after {event}."])
    true = [f"{what} must {action} within {n} {unit} of {event}.", f"{what} must {action} no later than {n} {unit} after {event}.", f"the latest time for {what} to {action} is {n} {unit} after {event}.", f"there are {n} {unit} after {event} for {what} to {action}.", f"{what} must not {action} later than {n} {unit} after {event}."]
    less = max(1, n - number(rng, 1, max(1, n // 2)))
    false = [(f"{what} must {action} after more than {n} {unit} from {event}.", CONTRADICTED), (f"{what} must {action} no earlier than {n} {unit} after {event}.", CONTRADICTED), (f"{what} must {action} at least {n} {unit} after {event}.", CONTRADICTED), (f"{what} may {action} more than {n} {unit} after {event}.", CONTRADICTED), (f"{what} must {action} within {n} {unit} before {event}.", NEUTRAL),
             (f"{what} must {action} exactly {n} {unit} after {event}.", NEUTRAL)]
    if less < n:
        false.append((f"{what} must {action} within {less} {unit} of {event}.", NEUTRAL))
    return [cap(said)], true, false


THINGS = [("a team", "have", "players"), ("a password", "have", "characters"), ("the board", "have", "members"), ("each group", "contain", "pupils"), ("the committee", "meet", "times a year"), ("an upload", "contain", "files"), ("a room", "hold", "people"), ("a cluster", "have", "nodes"), ("a name", "have", "letters"), ("the summary", "have", "words"), ("a ticket", "cover", "journeys"), ("a member", "borrow", "books"), ("each table", "have", "columns"), ("a lesson", "last", "minutes"), ("an order", "include", "items"), ("the crew", "have", "sailors")]


def limit(rng):
    what, verb, unit = pick(rng, THINGS)
    n = number(rng, 3, 60)
    low = rng.random() < 0.5
    if low:
        say = [f"{what} must {verb} at least {n} {unit}.", f"{what} must {verb} no fewer than {n} {unit}.", f"{what} must {verb} {n} or more {unit}.", f"{what} must {verb} a minimum of {n} {unit}.", f"{what} must not {verb} fewer than {n} {unit}.", f"{what} may not {verb} less than {n} {unit}."]
        wrong = [f"{what} must {verb} at most {n} {unit}.", f"{what} must not {verb} more than {n} {unit}.", f"{what} may {verb} up to {n} {unit}.", f"{what} must {verb} a maximum of {n} {unit}.", f"{what} must {verb} exactly {n} {unit}.", f"{what} may {verb} fewer than {n} {unit}.", f"{what} must {verb} at least {n + number(rng, 1, 9)} {unit}."]
    else:
        say = [f"{what} may {verb} at most {n} {unit}.", f"{what} may {verb} up to {n} {unit}.", f"{what} must not {verb} more than {n} {unit}.", f"{what} may {verb} no more than {n} {unit}.", f"{what} may {verb} a maximum of {n} {unit}.", f"{what} may {verb} {n} {unit} or fewer."]
        wrong = [f"{what} must {verb} at least {n} {unit}.", f"{what} may {verb} more than {n} {unit}.", f"{what} must {verb} a minimum of {n} {unit}.", f"{what} must not {verb} fewer than {n} {unit}.", f"{what} must {verb} exactly {n} {unit}.", f"{what} may {verb} {n + number(rng, 1, 9)} {unit}.", f"{what} may {verb} no more than {max(1, n - number(rng, 1, 9))} {unit}."]
    return [cap(pick(rng, say))], say, [(w, NEUTRAL if "exactly" in w or "up to" in w else CONTRADICTED) for w in wrong]


# ---------------------------------------------------------------- conditions, exceptions, scope

CONDITIONS = [  # (outcome, its negation, condition, its negation)
    ("the deposit is refunded", "the deposit is not refunded", "the flat is left clean", "the flat is not left clean"), ("the file is overwritten", "the file is not overwritten", "the force flag is set", "the force flag is not set"), ("entry is free", "entry is not free", "the visitor is under 12", "the visitor is 12 or older"),
    ("the alarm sounds", "the alarm does not sound", "the door stays open", "the door is closed"), ("the contract ends", "the contract does not end", "one party gives notice", "neither party gives notice"), ("the cache is used", "the cache is not used", "the index is up to date", "the index is out of date"), ("a fine is due", "no fine is due", "the book is late", "the book is on time"),
    ("the lift stops", "the lift does not stop", "the load is too heavy", "the load is not too heavy"), ("the warranty applies", "the warranty does not apply", "the device was repaired by a dealer", "the device was not repaired by a dealer"), ("overtime is paid", "overtime is not paid", "the manager has agreed in writing", "the manager has not agreed in writing"), ("the request is retried", "the request is not retried", "the server answers with an error", "the server does not answer with an error"),
    ("the operation is postponed", "the operation is not postponed", "the patient has a fever", "the patient has no fever"), ("the match is played indoors", "the match is not played indoors", "it rains", "it does not rain"), ("the lamp turns green", "the lamp does not turn green", "the battery is full", "the battery is not full"), ("the account is locked", "the account is not locked", "the password is wrong three times", "the password is right"),
    ("a visa is required", "no visa is required", "the stay is longer than 90 days", "the stay is 90 days or shorter"), ("the data is deleted", "the data is kept", "the user withdraws consent", "the user does not withdraw consent"), ("the rent can be raised", "the rent cannot be raised", "the tenant agrees", "the tenant does not agree"), ("dogs are allowed on the beach", "dogs are not allowed on the beach", "they are on a lead", "they are not on a lead"), ("the build fails", "the build does not fail", "a test fails", "no test fails"),
    ("the pump starts", "the pump does not start", "the water level is low", "the water level is not low"), ("postage is charged", "postage is not charged", "the order is below 50 euros", "the order is 50 euros or more"), ("a second signature is needed", "no second signature is needed", "the amount exceeds 10,000 dollars", "the amount is 10,000 dollars or less"), ("the course takes place", "the course does not take place", "eight people sign up", "fewer than eight people sign up"),
    ("the treatment is continued", "the treatment is not continued", "the rash gets better", "the rash does not get better"), ("the log is compressed", "the log is not compressed", "it is larger than 10 MB", "it is 10 MB or smaller"), ("the driver is paid extra", "the driver is not paid extra", "the trip is on a Sunday", "the trip is not on a Sunday"), ("the seat is given away", "the seat is not given away", "the passenger does not check in", "the passenger checks in"),
]


def condition_scene(rng):
    o, no, c, nc = pick(rng, CONDITIONS)
    way = rng.randrange(3)
    if way == 0:
        say = [f"{o} if {c}.", f"if {c}, {o}.", f"when {c}, {o}.", f"in case {c}, {o}."]
        wrong = [(f"{o}.", NEUTRAL), (f"{o}, whether or not {c}.", NEUTRAL), (f"if {nc}, {o}.", NEUTRAL), (f"{o} even if {nc}.", NEUTRAL), (f"if {c}, {no}.", CONTRADICTED), (f"{no} if {c}.", CONTRADICTED), (f"{o} in every case.", NEUTRAL), (f"{o} unless {c}.", CONTRADICTED)]
    elif way == 1:
        say = [f"{o} only if {c}.", f"{o} only when {c}.", f"if {nc}, {no}.", f"unless {c}, {no}.", f"{no} unless {c}."]
        wrong = [(f"{o} even if {nc}.", CONTRADICTED), (f"{o}, whether or not {c}.", CONTRADICTED), (f"if {nc}, {o}.", CONTRADICTED), (f"{o} in every case.", CONTRADICTED), (f"{o} only if {nc}.", CONTRADICTED), (f"{o}.", NEUTRAL)]
    else:
        say = [f"{o} unless {c}.", f"unless {c}, {o}.", f"if {nc}, {o}.", f"{o} as long as {nc}."]
        wrong = [(f"{o} if {c}.", CONTRADICTED), (f"{o} even if {c}.", CONTRADICTED), (f"{o} only if {c}.", CONTRADICTED), (f"{o}, whether or not {c}.", CONTRADICTED), (f"if {nc}, {no}.", CONTRADICTED), (f"{o} in every case.", CONTRADICTED)]
    return [cap(pick(rng, say))], say, wrong


CLASSES = [("rooms", ["the kitchen", "the library", "the gym", "the lobby", "the cellar"], [("have heating", "has heating", "have no heating", "has no heating"), ("are open on Sundays", "is open on Sundays", "are closed on Sundays", "is closed on Sundays"), ("were renovated", "was renovated", "were not renovated", "was not renovated")]),
           ("commands", ["list", "delete", "export", "search", "import"], [("need a password", "needs a password", "do not need a password", "does not need a password"), ("write to the log", "writes to the log", "do not write to the log", "does not write to the log"), ("work offline", "works offline", "do not work offline", "does not work offline")]),
           ("countries", ["Norway", "Chile", "Kenya", "Portugal", "Vietnam"], [("signed the treaty", "signed the treaty", "did not sign the treaty", "did not sign the treaty"), ("sent a delegation", "sent a delegation", "did not send a delegation", "did not send a delegation"), ("voted in favour", "voted in favour", "did not vote in favour", "did not vote in favour")]),
           ("departments", ["Finance", "Sales", "Research", "Legal", "Marketing"], [("met their budget", "met its budget", "did not meet their budget", "did not meet its budget"), ("use the new system", "uses the new system", "do not use the new system", "does not use the new system"), ("grew last year", "grew last year", "did not grow last year", "did not grow last year")]),
           ("models", ["the compact", "the deluxe", "the classic", "the mini", "the touring"], [("come with a charger", "comes with a charger", "come without a charger", "comes without a charger"), ("are waterproof", "is waterproof", "are not waterproof", "is not waterproof"), ("run on gas", "runs on gas", "do not run on gas", "does not run on gas")]),
           ("trains", ["the express", "the night train", "the shuttle", "the regional", "the airport line"], [("stop at Linden", "stops at Linden", "do not stop at Linden", "does not stop at Linden"), ("carry bicycles", "carries bicycles", "do not carry bicycles", "does not carry bicycles"), ("run on holidays", "runs on holidays", "do not run on holidays", "does not run on holidays")]),
           ("species", ["the otter", "the lynx", "the heron", "the badger", "the newt"], [("hibernate", "hibernates", "do not hibernate", "does not hibernate"), ("are protected by law", "is protected by law", "are not protected by law", "is not protected by law"), ("hunt at night", "hunts at night", "do not hunt at night", "does not hunt at night")])]


def exception(rng):
    noun, members, predicates = pick(rng, CLASSES)
    x, y = rng.sample(members, 2)
    p, p1, np_, np1 = pick(rng, predicates)
    way = rng.randrange(4)
    if way == 0:
        say = [f"all {noun} except {x} {p}.", f"every one of the {noun} apart from {x} {p1}.", f"with the exception of {x}, all {noun} {p}.", f"{x} is the only one of the {noun} that {np1}."]
        wrong = [(f"all {noun}, including {x}, {p}.", CONTRADICTED), (f"{x} {p1}.", CONTRADICTED), (f"all {noun} {p}.", CONTRADICTED), (f"only {x} {p1}.", CONTRADICTED)]
    elif way == 1:
        say = [f"only {x} {p1}.", f"none of the {noun} except {x} {p1}.", f"{x} is the only one of the {noun} that {p1}.", f"apart from {x}, none of the {noun} {p1}."]
        wrong = [(f"{y} {p1}.", CONTRADICTED), (f"{x} and {y} {p}.", CONTRADICTED), (f"all {noun} {p}.", CONTRADICTED), (f"{x} is the only one of the {noun} that {np1}.", CONTRADICTED), (f"all {noun} except {x} {p}.", CONTRADICTED)]
    elif way == 2:
        say = [f"{x} {p1}, but {y} {np1}.", f"{x} {p1}; {y} {np1}.", f"{y} {np1}, {x} {p1}.", f"unlike {y}, {x} {p1}.", f"{x} {p1}, unlike {y}."]
        wrong = [(f"{x} and {y} {p}.", CONTRADICTED), (f"{y} {p1}.", CONTRADICTED), (f"{x} {np1}, but {y} {p1}.", CONTRADICTED), (f"neither {x} nor {y} {p1}.", CONTRADICTED), (f"unlike {x}, {y} {p1}.", CONTRADICTED)]
    else:
        say = [f"neither {x} nor {y} {p1}.", f"{x} {np1}, and {y} {np1} either." if "not" in np1 or "no " in np1 else f"both {x} and {y} {np_}.", f"{x} {np1}.", f"{y} {np1}.", f"{y} and {x} {np_}."]
        wrong = [(f"{x} {p1}.", CONTRADICTED), (f"{y} {p1}.", CONTRADICTED), (f"{x} and {y} {p}.", CONTRADICTED), (f"{x} {np1}, but {y} {p1}.", CONTRADICTED)]
        first = say[0] if rng.random() < 0.7 else say[4]
        return [cap(first)], say, wrong
    return [cap(pick(rng, say))], say, wrong


LISTS = [("you may bring", "you must not bring", "water,sandwiches,a camera,glass bottles,dogs,a folding chair,fireworks,an umbrella,drones,a rucksack"), ("the rent includes", "the rent does not include", "heating,electricity,water,the parking space,cleaning of the stairs,internet,furniture,waste collection"), ("the plan covers", "the plan does not cover", "dental care,glasses,hospital stays,physiotherapy,vaccinations,cosmetic surgery,ambulance rides,massages"), ("the new version supports", "the new version no longer supports", "dark mode,printing,plugins,offline use,PDF export,voice input,the old file format,keyboard shortcuts"), ("the committee approved", "the committee rejected", "the new roof,a second playground,the bridge,the bus lane,longer opening hours,the car park,the swimming pool"), ("apprentices learn", "apprentices do not learn", "welding,book-keeping,turning,painting,first aid,programming,carpentry"), ("members can vote on", "members cannot vote on", "the budget,the statutes,the fees,the choice of auditor,the colours of the club,the date of the festival")]


def listed(rng):
    yes, no, items = pick(rng, LISTS)
    items = rng.sample(items.split(","), 6)
    n = rng.randrange(2, 5)
    inside, outside = items[:n], items[n:]
    if rng.random() < 0.5:
        sentences = ["\n".join([cap(yes) + ":"] + ["- " + i for i in inside] + [cap(no) + ":"] + ["- " + i for i in outside])]
    else:
        join = lambda xs: ", ".join(xs[:-1]) + " and " + xs[-1]
        other = ", ".join(outside[:-1]) + " or " + outside[-1]
        sentences = [cap(f"{yes} {join(inside)}."), cap(f"{no} {other}." if "not" in no else f"{no} {join(outside)}.")]
    i, o = pick(rng, inside), pick(rng, outside)
    return sentences, [f"{yes} {i}.", f"{no} {o}."], [(f"{yes} {o}.", CONTRADICTED), (f"{no} {i}.", CONTRADICTED)]


COMPARED = [("taller", "shorter"), ("older", "younger"), ("faster", "slower"), ("more expensive", "cheaper"), ("heavier", "lighter"), ("larger", "smaller"), ("longer", "shorter"), ("warmer", "colder"), ("louder", "quieter"), ("more popular", "less popular"), ("safer", "less safe"), ("more accurate", "less accurate"), ("busier", "less busy"), ("newer", "older")]
COMPARABLE = ["the tower/the chimney/the mast", "the red car/the blue car/the van", "the first method/the second method/the baseline", "the northern route/the southern route/the coastal road", "the hotel/the hostel/the guest house", "the summer course/the winter course/the evening course", "the old parser/the new parser/the fallback parser", "the lake/the river/the pond", "the library/the town hall/the theatre", "the paper edition/the online edition/the audio edition", "the left pump/the right pump/the spare pump"]


def compared(rng):
    more, less = pick(rng, COMPARED)
    if rng.random() < 0.5:
        more, less = less, more
    a, b, c = rng.sample(pick(rng, COMPARABLE).split("/"), 3)
    forms = lambda x, y: [f"{x} is {more} than {y}.", f"{y} is {less} than {x}.", f"compared with {y}, {x} is {more}.", f"of {x} and {y}, {x} is the {more} one."]
    sentences = [cap(pick(rng, forms(a, b)[:3]))]
    true = forms(a, b)
    false = [(f, CONTRADICTED) for f in forms(b, a)]
    if rng.random() < 0.4:
        sentences.append(cap(f"{b} is {more} than {c}."))
        true.append(f"{a} is {more} than {c}.")
        false.append((f"{c} is {more} than {a}.", CONTRADICTED))
    else:
        false.append((f"{a} is {more} than {c}.", NEUTRAL))
    false.append((f"{a} is as {more.removeprefix('more ') if more.startswith('more ') else 'good'} as {b}.", CONTRADICTED if more.startswith("more ") else NEUTRAL))
    return sentences, true, false


DATED = [("the bridge", "opened", "closed"), ("the school", "was founded", "moved to its new building"), ("the magazine", "first appeared", "ceased publication"), ("the mine", "was opened", "was abandoned"), ("the law", "was passed", "was repealed"), ("the ship", "was launched", "was scrapped"), ("the band", "was formed", "broke up"), ("the programme", "started", "ended"), ("the station", "was built", "was demolished"), ("the product", "was released", "was withdrawn"), ("the club", "was founded", "won the cup"), ("the treaty", "was signed", "came into force")]


def dated(rng):
    x, first, second = pick(rng, DATED)
    y1 = number(rng, 1850, 1999)
    y2 = y1 + number(rng, 1, 24)
    said = pick(rng, [f"{x} {first} in {y1} and {second} in {y2}.", f"{x} {first} in {y1}; it {second} in {y2}.", f"{x}, which {first} in {y1}, {second} in {y2}."])
    true = [f"{x} {first} in {y1}.", f"{x} {second} in {y2}.", f"in {y2}, {x} {second}.", f"{x} {second} {y2 - y1} years after it {first}." if y2 - y1 > 1 else f"{x} {second} in {y2}.", f"it was in {y1} that {x} {first}."]
    false = [(f"{x} {first} in {y2}.", CONTRADICTED), (f"{x} {second} in {y1}.", CONTRADICTED), (f"in {y1}, {x} {second}.", CONTRADICTED), (f"{x} {first} and {second} in {y1}.", CONTRADICTED), (f"{x} {second} before it {first}.", CONTRADICTED), (f"it was in {y2} that {x} {first}.", CONTRADICTED)]
    return [cap(said)], true, false


CAUSES = [("the road was closed", "a tree had fallen"), ("the concert was cancelled", "the singer was ill"), ("the server crashed", "the disk was full"), ("the harvest failed", "there was no rain"), ("prices rose", "the factory had burned down"), ("the flight was late", "there was fog"), ("the team lost", "its goalkeeper was injured"), ("the test was repeated", "the sample was contaminated"), ("the shop closed", "the rent had doubled"), ("the cable overheated", "the fuse was too strong"), ("sales fell", "a competitor had opened next door"), ("the river flooded the town", "the dam had broken")]


def caused(rng):
    e, c = pick(rng, CAUSES)
    e2, c2 = pick(rng, [x for x in CAUSES if x[0] != e])
    say = [f"{e} because {c}.", f"because {c}, {e}.", f"{c}, so {e}.", f"the reason why {e} was that {c}.", f"{c}; for this reason {e}."]
    wrong = [(f"{c} because {e}.", CONTRADICTED), (f"{e}, so {c}.", CONTRADICTED), (f"{e} although {c}.", CONTRADICTED), (f"the reason why {c} was that {e}.", CONTRADICTED), (f"{e} because {c2}.", NEUTRAL)]
    sentences = [cap(pick(rng, say))]
    if rng.random() < 0.4:
        sentences.append(cap(f"{e2} because {c2}."))
        wrong += [(f"{e2} because {c}.", CONTRADICTED), (f"{e} because {c2}.", CONTRADICTED)]
    return sentences, say, wrong


TABLES = [("Model", "Anton,Birk,Cosma,Dorn,Elba,Fjord,Gilda", {"Price": "$199,$249,$320,$410,$95,$560", "Weight": "1.2 kg,850 g,2 kg,640 g,3.1 kg", "Warranty": "1 year,2 years,3 years,5 years,none", "Colour": "red,black,silver,green,white"}),
          ("City", "Aster,Brook,Calder,Dunmore,Eastvale,Farley", {"Population": "12000,48500,103000,7400,260000", "Founding year": "1204,1388,1511,1699,1842", "Mayor": "A. Cole,R. Singh,L. Brandt,P. Ortiz,N. Kovac", "River": "Tarn,Lune,Wye,Isk,Orr"}),
          ("Plan", "Free,Basic,Team,Business,Enterprise", {"Storage": "1 GB,10 GB,100 GB,1 TB,unlimited", "Users": "1,5,25,100,500", "Support": "none,email,chat,phone,on site", "Monthly fee": "$0,$9,$29,$99,$400"}),
          ("Flag", "-a,-b,-c,-n,-q,--all,--fast,--keep", {"Default": "off,on,auto,10,none", "First version": "1.0,1.4,2.0,2.3,3.1", "Effect": "lists hidden files,sorts by size,prints no output,keeps old copies,follows links"}),
          ("Course", "Pottery,Spanish,Chess,Welding,Piano,Yoga,Coding", {"Day": "Monday,Tuesday,Wednesday,Thursday,Friday", "Room": "A1,B12,C3,Hall 2,Studio", "Teacher": "Ms Lund,Mr Reyes,Dr Pohl,Ms Ito,Mr Banda", "Fee": "40 euros,65 euros,80 euros,free,120 euros"}),
          ("Substance", "Salt,Iron,Wax,Lead,Sugar,Glass,Copper", {"Melting point": "801 C,1538 C,62 C,327 C,186 C", "Sample mass": "12 g,50 g,8 g,75 g,33 g", "Storage": "cabinet 1,cabinet 2,fridge,cellar,shelf 4"}),
          ("Department", "Finance,Sales,Research,Legal,Support,Logistics", {"Head": "J. Moss,K. Adler,T. Wong,E. Silva,D. Fox", "Staff": "4,12,37,58,9", "Floor": "ground,first,second,third,fourth", "Budget": "$20000,$150000,$480000,$90000"})]


def make_table(rng):
    """Return (header, rows) of a made table whose columns hold distinct values."""
    key, names, columns = pick(rng, TABLES)
    heads = rng.sample(sorted(columns), min(len(columns), rng.randrange(2, 4)))
    names = rng.sample(names.split(","), rng.randrange(3, 5))
    body = [rng.sample(columns[h].split(","), len(names)) if len(columns[h].split(",")) >= len(names) else None for h in heads]
    heads = [h for h, b in zip(heads, body) if b]
    body = [b for b in body if b]
    return [key] + heads, [[n] + [b[i] for b in body] for i, n in enumerate(names)]


def table(rng):
    header, rows = make_table(rng)
    style = rng.randrange(3)
    bar = [" | ".join(header)] + [" | ".join(r) for r in rows]
    if style == 1:
        bar = ["| " + " | ".join(r) + " |" for r in [header, ["---"] * len(header)] + rows]
    if style == 2:
        bar = ["; ".join(f"{h}: {c}" for h, c in zip(header, r)) for r in rows]
    i, k = rng.sample(range(len(rows)), 2)
    j = rng.randrange(1, len(header))
    n, m, v, w, h = rows[i][0], rows[k][0], rows[i][j], rows[k][j], header[j]
    low = h[0].lower() + h[1:]
    forms = lambda a, x: [f"the {low} of {a} is {x}.", f"{a} has {x} as its {low}.", f"for {a}, the {low} is {x}.", f"{x} is the {low} of {a}.", f"the {low} given for {a} is {x}."]
    frame = rng.randrange(5)
    true, false = forms(n, v)[frame], forms(n, w)[frame] if rng.random() < 0.5 else forms(m, v)[frame]
    others = [x for x in range(1, len(header)) if x != j]
    wrong = [(false, CONTRADICTED)]
    if others and rng.random() < 0.25:
        low2 = header[pick(rng, others)].lower()
        wrong = [(forms(n, v)[frame].replace(low, low2, 1), CONTRADICTED)]
    return ["\n".join(bar)], [true], wrong


SCENES = {"scene-arms": [arms, arms, trial, side_effects], "scene-roles": [duty, relation], "scene-order": [steps], "scene-bounds": [deadline, limit], "scene-conditions": [condition_scene], "scene-scope": [exception, listed], "scene-values": [dated, compared, caused], "scene-table": [table]}


def scene_groups(groups, count):
    """Add count groups of each kind; up to three sentences of other scenes stand around the deciding ones."""
    rng = groups.rng
    for kind, makers in SCENES.items():
        tries = 0
        while groups.kinds[kind] < count and tries < 4 * count:
            tries += 1
            main, true, false = pick(rng, makers)(rng)
            said = " ".join(main)
            true = [t for t in map(cap, true) if t not in said or rng.random() < 0.1]
            false = [(cap(f), l) for f, l in false if cap(f) not in said]
            if not true or not false:
                continue
            noise = [pick(rng, makers)(rng)[0][0] for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3]))]
            if kind == "scene-table":
                noise = []
            noise = [n for n in noise if "\n" not in n and not set(n.lower().split()[:3]) & set(said.lower().replace(".", "").split()) - {"the", "a", "of", "all"}]
            if kind == "scene-table":
                noise = []
            noise = [n for n in noise if not clash(n, said)]
            at = rng.randrange(len(noise) + 1)
            before = " ".join(noise[:at])
            passage = " ".join(x for x in (before, said, " ".join(noise[at:])) if x)
            start = passage.index(said)
            f = pick(rng, false)
            t = nearest(true, f[0], rng)
            groups.add(kind, "", passage, [t], [{"claim": f[0], "label": f[1]}], (start, start + len(main[0])), kind, "scenes")


def clash(a, b):
    """Report whether two scenes speak of the same things."""
    common = set("the a an of is are was were in and for to with if when only all it must may be by not no from that after before within days you have has on at or than".split())
    x = {w for w in a.lower().replace(".", "").replace(",", "").split() if w not in common and not w[0].isdigit()}
    y = {w for w in b.lower().replace(".", "").replace(",", "").split() if w not in common and not w[0].isdigit()}
    return len(x & y) >= 2


def nearest(true, false, rng):
    """Return the true claim that shares most words with the false one, with some chance for another."""
    words = set(false.lower().split())
    scored = sorted(true, key=lambda t: -len(words & set(t.lower().split())) / len(t.split()))
    return scored[0] if rng.random() < 0.75 else pick(rng, true)


# ---------------------------------------------------------------- questions about scenes

ARM_QUESTIONS = {"dose": ["What is the dose for {g}?", "How much should {g} take?", "dose {g}"], "fee": ["What do {g} pay?", "fee for {g}", "How much does it cost for {g}?"], "annual leave": ["How much annual leave do {g} get?", "holiday of {g}", "How many days off do {g} have?"], "notice period": ["What notice must {g} give?", "notice period for {g}"],
                 "baggage allowance": ["What may {g} carry?", "baggage allowance for {g}", "How much luggage can {g} take?"], "limit": ["How much can {g} store?", "storage limit of {g}"], "session length": ["How long do {g} stay signed in?", "session length {g}"], "ration": ["How much do {g} eat?", "ration for {g}"], "speed limit": ["How fast may {g} drive?", "speed limit for {g}"],
                 "weekly hours": ["How long do {g} work each week?", "weekly hours of {g}"], "retention period": ["How long are {g} kept?", "retention period for {g}"], "distance": ["How far do {g} run?", "distance for {g}"]}


def arm_question(rng):
    """Return (passage, [(question, answer text or None)]) about two arms; a third group is not mentioned."""
    groups, verb, what, values = pick(rng, ARMS)
    a, b, c = rng.sample(groups, 3)
    x, y = rng.sample(values, 2)
    said = pick(rng, [f"{a} {verb} {x} and {b} {verb} {y}.", f"the {what} is {x} for {a} and {y} for {b}.", f"{a} {verb} {x}, while {b} {verb} {y}.", f"{b} {verb} {y}. {a.capitalize()} {verb} {x}."])
    frames = ARM_QUESTIONS[what]
    other = pick(rng, [k for k in ARM_QUESTIONS if k != what])
    return cap(said), [(pick(rng, frames).format(g=a), x), (pick(rng, frames).format(g=b), y), (pick(rng, frames).format(g=c), None), (pick(rng, ARM_QUESTIONS[other]).format(g=a), None)]


def date_question(rng):
    x, first, second = pick(rng, DATED)
    y1 = number(rng, 1850, 1999)
    y2 = y1 + number(rng, 1, 24)
    base = lambda v: v.replace("was ", "").replace("first appeared", "first appear")
    ask = lambda v: f"When was {x} {v[4:]}?" if v.startswith("was ") else f"When did {x} {past_to_base(v)}?"
    absent = pick(rng, [v for d in DATED for v in d[1:] if v not in (first, second) and v.startswith("was ") and v.split()[1] not in first + second])
    other = pick(rng, [d[0] for d in DATED if d[0] != x])
    said = pick(rng, [f"{x} {first} in {y1} and {second} in {y2}.", f"{x} {first} in {y1}; it {second} in {y2}."])
    return cap(said), [(ask(first), str(y1)), (ask(second), str(y2)), (ask(absent), None), (ask(first).replace(x, other), None)]


BASES = {"opened": "open", "closed": "close", "first": "first", "appeared": "appear", "ceased": "cease", "broke": "break", "started": "start", "ended": "end", "moved": "move", "won": "win", "came": "come"}


def past_to_base(phrase):
    return " ".join(BASES.get(w, w) for w in phrase.split()).replace("its new", "its new")


def table_question(rng):
    header, rows = make_table(rng)
    shown = rows[:-1]
    lines = [" | ".join(header)] + [" | ".join(r) for r in shown] if rng.random() < 0.6 else ["; ".join(f"{h}: {c}" for h, c in zip(header, r)) for r in shown]
    i, j = rng.randrange(len(shown)), rng.randrange(1, len(header))
    h = header[j].lower()
    frame = pick(rng, ["What is the {h} of {r}?", "{r} {h}", "{h} of {r}", "What {h} is given for {r}?"])
    missing = pick(rng, ["height", "telephone number", "owner", "date of birth", "serial number", "opening time"])
    return "\n".join(lines), [(frame.format(h=h, r=shown[i][0]), (lines[-len(shown) + i], shown[i][j])), (frame.format(h=h, r=rows[-1][0]), None), (frame.format(h=missing, r=shown[i][0]), None)]


def list_question(rng):
    yes, no, items = pick(rng, LISTS)
    items = rng.sample(items.split(","), 6)
    n = rng.randrange(2, 5)
    first = "\n".join([cap(yes) + ":"] + ["- " + i for i in items[:n]])
    second = "\n".join([cap(no) + ":"] + ["- " + i for i in items[n:]])
    ask = {"you may bring": "What may I bring?", "the rent includes": "What does the rent include?", "the plan covers": "What does the plan cover?", "the new version supports": "What does the new version support?", "the committee approved": "What did the committee approve?", "apprentices learn": "What do apprentices learn?", "members can vote on": "What can members vote on?"}[yes]
    against = {"you may bring": "What must I not bring?", "the rent includes": "What is not included in the rent?", "the plan covers": "What does the plan not cover?", "the new version supports": "What is no longer supported?", "the committee approved": "What was rejected?", "apprentices learn": "What do apprentices not learn?", "members can vote on": "What can members not vote on?"}[yes]
    return first + "\n" + second, first, second, ask, against


def duty_question(rng):
    a, b = pick(rng, PARTIES)
    verb, things = pick(rng, [t for t in TRANSFERS[:-1] if t[0] != "owe"])
    thing, other = rng.sample(things, 2)
    base, third, _, past, part = inflect(verb)
    n = number(rng, 5, 60)
    said = f"{a} must {base} {b} {thing} within {n} days."
    return cap(said), [(f"What must {a} {base} {b}?", thing), (f"Within how many days must {a} {base} {thing}?", str(n)), (f"Who must {base} {thing}?", cap(a) if a[0].islower() else a), (f"What must {b} {base} {a}?", None), (f"Within how many days must {a} {base} {other}?", None)]


def scene_rows(rows, count):
    """Add answerability groups about made facts: one passage, questions it answers and near misses."""
    rng = rows.rng
    for n in range(count):
        if n % 5 == 4:
            passage, first, second, ask, against = list_question(rng)
            rows.add([("scene-list", "", ask, passage, (0, len(first))), ("scene-list", "", against, passage, (len(first) + 1, len(passage))), ("scene-list-other", "", ask, pick(rng, [x for x in (list_question(rng)[0] for _ in range(12)) if x[:14] != passage[:14]] or ["Nothing is known about this."]), None)])
            continue
        passage, pairs = pick(rng, [arm_question, arm_question, date_question, table_question, duty_question])(rng)
        out = []
        for question, answer in pairs:
            line, text = answer if isinstance(answer, tuple) else (passage, answer)
            if text is None:
                out.append(("scene-absent", "", cap(question), passage, None))
                continue
            at = line.rfind(text) if isinstance(answer, tuple) else line.find(text)
            if at < 0 or line.count(text) > 1:
                continue
            at += passage.index(line)
            out.append(("scene", "", cap(question), passage, (at, at + len(text))))
        rows.add(out)
