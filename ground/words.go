package ground

import "strings"

// A marking is the set of what the small words before a content word say of it:
// whether it is denied, allowed or demanded, bounded, how often, and how it hangs
// on what stands before. A claim and its source have to agree in it.
type marking uint64

const (
	isNot marking = 1 << iota
	isMay
	isCould
	isMust
	isNeed // must, but "need not" is not "must not"
	isShould
	isWill
	isWould
	isPast
	isPerhaps
	isOnly
	isAll
	isAny
	isSome
	isMany
	isMost
	isFew
	isAtMost
	isAtLeast
	isMore
	isLess
	isAbout
	isExactly
	isAlways
	isEver
	isUsually
	isOften
	isSometimes
	isRarely
	isBefore
	isAfter
	isUntil
	isSince
	isIf
	isUnless
	isWhile
	isBut
	isExcept
	isBecause
	isOr
	isAnd
	isIn
	isTo
	isFrom
	isBy
	isWith
	isFor
	isWithin
	isDuring
	isBetween
	isThan
	isAs
	isWe
	isYou
	isTwice // one of the others is said again: "is never not"
)

// restricts are the marks by which what follows takes back a part of what stands
// before it: a claim that leaves such words out says more than its source.
const restricts = isNot | isOnly | isIf | isUnless | isExcept | isUntil | isBut | isOr | isPerhaps | isThan | isBefore |
	isFew | isRarely | isSometimes

// adverbial are the marks that words begin with which may stand at either end of a
// sentence: "in Berlin", "within an hour", "if it rains".
const adverbial = isIn | isWithin | isDuring | isBefore | isAfter | isUntil | isSince | isIf | isUnless | isFor | isFrom | isWith | isBecause

// structural are the marks that say nothing by being said again.
const structural = hangs | isWe | isYou | isAll

// faint are those that say nothing at the end of a sentence.
const faint = isAnd | isIn | isTo | isFrom | isBy | isWith | isFor | isAs | isWe | isYou

// hangs are the marks of words that belong to a noun before them.
const hangs = adverbial | isTo | isBy | isBetween | isThan | isAs | isOr | isAnd

// modal are the marks of what need not be so.
const modal = isMay | isCould | isMust | isShould | isWill | isWould

// phrases are the small words, one or several, that mark what follows them. Of
// those that begin alike the longest counts.
var phrases = func() map[string]marking {
	m := map[string]marking{}
	for _, p := range []struct {
		marks marking
		list  string
	}{
		{isNot, "not,no,none,nobody,nothing,neither,nor,rather than,instead of,isn't,aren't,don't,doesn't,hasn't,haven't,ain't"},
		{isNot, "kein,keine,keinen,keiner,keinem,nicht,niemals"},
		{isNot | isPast, "wasn't,weren't,didn't,hadn't"},
		{isNot | isEver, "never,nie"},
		{isEver, "ever"},
		{isMay, "may,can,allowed to,permitted to"},
		{isMay | isNot, "cannot,can't"},
		{isCould, "might,could"},
		{isCould | isNot, "couldn't,mightn't"},
		{isMust, "must,shall,obliged to"},
		{isMust | isNot, "mustn't"},
		{isNeed, "have to,has to,need to,needs to,required to"},
		{isNeed | isPast, "had to,needed to"},
		{isNeed | isNot, "needn't"},
		{isShould, "should,ought to,supposed to"},
		{isShould | isNot, "shouldn't"},
		{isWill, "will,going to,it'll,they'll,he'll,she'll"},
		{isWill | isNot, "won't"},
		{isWould, "would"},
		{isWould | isNot, "wouldn't"},
		{isPast, "was,were,did"},
		{isPerhaps, "perhaps,maybe,possibly,probably,likely,potentially,presumably,allegedly,reportedly"},
		{isOnly, "only,solely,exclusively,merely,just,nur"},
		{isAll, "all,every,each,all of,each of"},
		{isAny, "any"},
		{isSome, "some,some of,certain,several"},
		{isMany, "many,numerous"},
		{isMost, "most,most of,majority of"},
		{isFew, "few"},
		{isAtMost, "up to,at most,no more than,not more than,a maximum of,maximum of,at a maximum,not exceeding,höchstens,bis zu,maximal"},
		{isAtLeast, "at least,no less than,not less than,no fewer than,a minimum of,minimum of,at a minimum,mindestens"},
		{isMore, "more than,in excess of"},
		{isLess, "less than,fewer than"},
		{isAbout, "about,around,approximately,roughly,nearly,almost,circa,ca,etwa"},
		{isExactly, "exactly,precisely"},
		{isAlways, "always,at all times,invariably,immer"},
		{isUsually, "usually,typically,generally,normally,commonly,mostly,as a rule,mainly,largely"},
		{isOften, "often,frequently"},
		{isSometimes, "sometimes,occasionally,at times"},
		{isRarely, "rarely,seldom,hardly"},
		{isBefore, "before,prior to"},
		{isAfter, "after,as soon as,once"},
		{isUntil, "until,till"},
		{isSince, "since"},
		{isIf, "if,when,whenever,whether,provided,provided that,as long as,in case,falls,wenn"},
		{isUnless, "unless"},
		{isWhile, "while,whereas,although,though,even though,despite"},
		{isBut, "but,yet,aber"},
		{isExcept, "except,except for,except when,apart from,other than,excluding,besides"},
		{isBecause, "because,because of,due to"},
		{isOr, "or,oder"},
		{isAnd, "and,as well as,but also,und"},
		{isIn, "in,on,at"},
		{isTo, "to,into,onto,in order to"},
		{isFrom, "from,out of"},
		{isBy, "by"},
		{isWith, "with"},
		{isNot | isWith, "without,ohne"},
		{isFor, "for"},
		{isWithin, "within"},
		{isDuring, "during"},
		{isBetween, "between,among"},
		{isThan, "than"},
		{isAs, "as,such as"},
		{isWe, "i,we,us,our,ours,my,me,mine,we're,we've,i'm,i've"},
		{isWe | isWill, "we'll,i'll"},
		{isYou, "you,your,yours,you're,you've"},
		{isYou | isWill, "you'll"},
		{isLess, "<"},
		{isMore, ">"},
		{isAtMost, "≤"},
		{isAtLeast, "≥"},
		{isNot, "≠"},
		{isAbout, "~,≈"},
	} {
		for phrase := range strings.SplitSeq(p.list, ",") {
			m[phrase] = p.marks
		}
	}
	return m
}()

// longestPhrase is the most words that a phrase has.
const longestPhrase = 4

// after are phrases that mark the number before them.
var after = map[string]marking{
	"or more": isAtLeast, "or longer": isAtLeast, "or above": isAtLeast, "or older": isAtLeast, "or over": isAtLeast,
	"or less": isAtMost, "or fewer": isAtMost, "or below": isAtMost, "or under": isAtMost, "or shorter": isAtMost,
	"at most": isAtMost, "at least": isAtLeast, "maximum": isAtMost, "minimum": isAtLeast,
}

// idle are words that change nothing of what is said, or that stand for something
// said elsewhere.
var idle = wordSet(`a an the this that these those which who whom whose of per am is are be been being do does it its itself they
	them their theirs themselves he him his himself she her hers herself there here also too so then thus therefore hence very
	indeed please such both either however moreover furthermore additionally already they're it's that's there's they've
	der die das den dem des ein eine einen einem einer eines`)

// idlePhrases are several words that change nothing.
var idlePhrases = map[string]bool{"as well": true, "not only": true, "in addition": true, "for example": true, "for instance": true, "in particular": true}

var (
	being     = wordSet(`am is are was were be been being isn't aren't wasn't weren't get gets got`)
	relative  = wordSet(`that which who whom`)
	pronouns  = wordSet(`it they he she`)
	pointers  = wordSet(`this these those that`)
	particles = wordSet(`over out off up down back away through`)
	having    = wordSet(`have has had having haven't hasn't hadn't`)

	// people are the words for whoever reads the rules: what they may do you may do.
	people = wordSet(`employe staff user person peopl anyon everyon everybodi anybodi`)

	// persons are the stems of words for those whom something is done to that is
	// demanded or allowed: not by themselves.
	persons = wordSet(`visitor guest child children patient client custom student pupil member applic candid contractor tenant
		manag worker passeng intern parti supplier vendor resid driver player peopl anyon everyon`)

	// participles are those that do not end in -ed or -en.
	participles = wordSet(`made paid sent held kept done built set put cut led run sold told left lost found bought brought
		thought taught met read drawn shown known grown thrown begun born spent lent meant won hung laid said shut split spread
		understood withdrawn hit let`)
)

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// participle reports whether a lower-case word has the form of a past participle.
func participle(word string) bool {
	return len(word) > 3 && (strings.HasSuffix(word, "ed") || strings.HasSuffix(word, "en")) || participles[word]
}

// units are the spellings of what numbers count, by their stem.
var units = func() map[string]string {
	m := map[string]string{}
	for unit, list := range map[string]string{
		"euro": "€ eur euro euros", "dollar": "$ usd dollar dollars", "pound": "£ gbp pound pounds", "yen": "¥ jpy yen",
		"percent": "% percent pct prozent", "hour": "h hr hrs hour hours", "minut": "min mins minute minutes",
		"second": "s sec secs second seconds", "millisecond": "ms millisecond milliseconds", "kilomet": "km kilometer kilometers kilometre kilometres",
		"kilogram": "kg kilogram kilograms", "gigabyt": "gb gigabyte gigabytes", "megabyt": "mb megabyte megabytes",
		"kilobyt": "kb kilobyte kilobytes", "terabyt": "tb terabyte terabytes",
	} {
		for w := range strings.FieldsSeq(list) {
			m[w] = unit
		}
	}
	return m
}()

// currencies are the units that may stand before their number.
var currencies = wordSet("euro dollar pound yen")

var months = func() map[string]string {
	m := map[string]string{}
	for name := range strings.FieldsSeq("january february march april may june july august september october november december") {
		m[name], m[name[:3]] = name, name
	}
	m["sept"] = "september"
	return m
}()

// numberWords are the numbers that are written as words, scales those that
// multiply what stands before them.
var (
	numberWords = map[string]float64{
		"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
		"eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
		"eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
		"eighty": 80, "ninety": 90,
	}
	scales = map[string]float64{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
)
