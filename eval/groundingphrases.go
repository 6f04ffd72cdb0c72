package eval

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var numerals = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve")

var (
	spelt     = regexp.MustCompile(`(?:^| )(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) ((?:[a-su-z]|t[a-gi-z])[a-z]+s)\b`)
	inDigits  = regexp.MustCompile(`([a-z] )([2-9]|1[0-2]) ([a-z]{3,}s)\b`)
	separated = regexp.MustCompile(`\b(\d{1,3}),(\d{3})\b(?:,(\d{3})\b)?`)
	fraction  = regexp.MustCompile(`(?i)(?:thirds|quarters|fifths|tenths|-(?:one|two|three|four|five|six|seven|eight|nine)\b)`)
	percents  = regexp.MustCompile(`(\d) ?(%|percent\b|per cent\b)`)
	ordinals  = map[string]string{"first": "1st", "second": "2nd", "third": "3rd", "fourth": "4th", "fifth": "5th", "sixth": "6th", "seventh": "7th", "eighth": "8th", "ninth": "9th", "tenth": "10th", "eleventh": "11th",
		"twelfth": "12th", "thirteenth": "13th", "fourteenth": "14th", "fifteenth": "15th", "sixteenth": "16th", "seventeenth": "17th", "eighteenth": "18th", "nineteenth": "19th", "twentieth": "20th"}
	inCentury = regexp.MustCompile(`\b(\w+)([ -]centur(?:y|ies))\b`)
	isoDate   = regexp.MustCompile(`\b(January|February|March|April|May|June|July|August|September|October|November|December) (\d{1,2}), (\d{4})\b`)
	dayFirst  = regexp.MustCompile(`\b(\d{1,2}) (January|February|March|April|May|June|July|August|September|October|November|December) (\d{4})\b`)
)

// spelling writes numbers and dates in another way; and another number in another way.
func (e *editor) spelling(t *seedText, i int) []reworded {
	s := t.sentences[i]
	switch {
	case spelt.MatchString(s) && !fraction.MatchString(s):
		m := spelt.FindStringSubmatch(strings.TrimSpace(s))
		m[0] = strings.TrimSpace(m[0])
		n := slices.Index(numerals, m[1])
		return []reworded{
			fairly("number in digits", strings.Replace(s, m[0], strconv.Itoa(n)+" "+m[2], 1)),
			against("another number in digits", strings.Replace(s, m[0], strconv.Itoa(e.otherNumber(n))+" "+m[2], 1)),
		}
	case inDigits.MatchString(s):
		m := inDigits.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[2])
		return []reworded{
			fairly("number in words", strings.Replace(s, m[0], m[1]+numerals[n]+" "+m[3], 1)),
			against("another number in words", strings.Replace(s, m[0], m[1]+numerals[e.otherNumber(n)]+" "+m[3], 1)),
		}
	case isoDate.MatchString(s):
		return []reworded{fairly("date in another form", isoDate.ReplaceAllString(s, "$2 $1 $3"))}
	case dayFirst.MatchString(s):
		return []reworded{fairly("date in another form", dayFirst.ReplaceAllString(s, "$2 $1, $3"))}
	case inCentury.MatchString(s):
		m := inCentury.FindStringSubmatch(s)
		for word, short := range ordinals {
			switch strings.ToLower(m[1]) {
			case word:
				return []reworded{fairly("date in another form", strings.Replace(s, m[0], short+m[2], 1))}
			case short:
				return []reworded{fairly("date in another form", strings.Replace(s, m[0], word+m[2], 1))}
			}
		}
	case separated.MatchString(s):
		return []reworded{fairly("number without separators", separated.ReplaceAllString(s, "$1$2$3"))}
	case percents.MatchString(s):
		m := percents.FindStringSubmatch(s)
		if m[2] == "%" {
			return []reworded{fairly("percent in words", percents.ReplaceAllString(s, "$1 percent"))}
		}
		return []reworded{fairly("percent as a sign", percents.ReplaceAllString(s, "$1%"))}
	}
	return nil
}

// otherNumber is a number near n, from two to twelve.
func (e *editor) otherNumber(n int) int {
	for {
		if o := 2 + e.random.IntN(len(numerals)-2); o != n {
			return o
		}
	}
}

var introduced = regexp.MustCompile(`((?:[\w'’-]+ ){1,7})\(([A-Z]{2,6})\)`)

// A shortForm is an abbreviation that a text introduces: "World Bank (WB)".
type shortForm struct{ long, short string }

// introduced returns the abbreviations of a text whose letters its words begin with.
func (e *editor) introduced(t *seedText) []shortForm {
	if e.shortOf == t {
		return e.short
	}
	e.shortOf, e.short = t, nil
	for _, m := range introduced.FindAllStringSubmatch(t.String(), -1) {
		words := strings.Fields(m[1])
		n := len(m[2])
		if n > len(words) {
			continue
		}
		initials := ""
		for _, w := range words[len(words)-n:] {
			initials += strings.ToUpper(w[:1])
		}
		if initials == m[2] {
			e.short = append(e.short, shortForm{strings.Join(words[len(words)-n:], " "), m[2]})
		}
	}
	return e.short
}

// abbreviation has the long form of what a text abbreviates in the place of the short one,
// and the other way round.
func (e *editor) abbreviation(t *seedText, i int) []reworded {
	s := t.sentences[i]
	for _, m := range e.introduced(t) {
		long, whole := m.long, m.long+" ("+m.short+")"
		switch {
		case strings.Contains(s, whole):
			return []reworded{fairly("abbreviation for the long form", sentenceOf(strings.Replace(s, whole, m.short, 1)))}
		case strings.Contains(s, long):
			return []reworded{fairly("abbreviation for the long form", sentenceOf(strings.Replace(s, long, m.short, 1)))}
		case strings.Contains(s, m.short) && !strings.Contains(s, "("+m.short):
			short := regexp.MustCompile(`\b` + m.short + `\b`)
			return []reworded{fairly("long form for the abbreviation", sentenceOf(short.ReplaceAllString(s, long)))}
		}
	}
	return nil
}

var (
	list      = regexp.MustCompile(`((?:[a-z][\w-]*|[A-Z][\w-]*), )+((?:[A-Za-z][\w-]*)), and ((?:[A-Za-z][\w-]*))(?:[.,]| (?:in|on|at|that|which|were|was|are|is)\b)`)
	together  = regexp.MustCompile(`(?i)\b(?:between|both|consists?|consisted|comprises?|either|neither|combin\w+|total|together|respectively|only|not|two|three|four|five|six|mixture|sum|namely|all|each|same)\b`)
	alsoDone  = regexp.MustCompile(`^([A-Z][^,;:()]{5,80}?) (was|were) (\w+ed)( [^,;:()]{3,80}) and (was |were )(\w+ed)( [^,;:()]{3,80})\.$`)
	endClause = regexp.MustCompile(`^([A-Z][^;:()]{25,160}), (?:which|where|making|leading to|resulting in|including|such as|especially|particularly) [^;:()]{10,160}\.$`)
)

// shorter says a part of what a sentence says.
func (e *editor) shorter(t *seedText, i int) []reworded {
	s := t.sentences[i]
	if m := endClause.FindStringSubmatch(s); m != nil && hasVerb(m[1]) && !startsDangling(s) {
		return []reworded{fairly("end clause left out", sentenceOf(m[1]))}
	}
	if m := alsoDone.FindStringSubmatch(s); m != nil && !together.MatchString(s) && !startsDangling(s) {
		return []reworded{fairly("second half alone", sentenceOf(m[1]+" "+m[2]+" "+m[6]+m[7]))}
	}
	at := list.FindStringSubmatchIndex(s)
	if at == nil || together.MatchString(s) {
		return nil
	}
	at[1] = at[7] // without what shows that the list ends
	items := strings.Split(s[at[0]:at[5]], ", ")
	if len(items) < 2 || strings.Contains(s[at[0]:at[1]], "The ") || !(prepositions[lastOf(s[:at[0]])] || strings.HasSuffix(lastOf(s[:at[0]]), "s")) {
		return nil
	}
	return []reworded{fairly("list shortened", s[:at[0]]+strings.Join(items[:len(items)-1], ", ")+" and "+items[len(items)-1]+s[at[1]:])}
}

// A phrase may stand in the place of another, and of one that says the opposite.
type phrase struct {
	find    *regexp.Regexp
	fair    string
	opposed string // empty: none
}

func phrasesOf(lines string) []phrase {
	var out []phrase
	for line := range strings.Lines(lines) {
		parts := strings.Split(strings.TrimSpace(line), " = ")
		if len(parts) < 2 {
			continue
		}
		p := phrase{find: regexp.MustCompile(`\b` + parts[0] + `\b`), fair: parts[1]}
		if len(parts) > 2 {
			p.opposed = parts[2]
		}
		out = append(out, p)
	}
	return out
}

// alikePhrases are what is said in another way: what is found, what stands for it, and
// what says the opposite or something else.
var alikePhrases = phrasesOf(`
is located in = lies in
are located in = lie in
was located in = lay in
more than (\d) = over $1 = fewer than $1
less than (\d) = under $1 = more than $1
at least (\d+) (\w+s) = $1 or more $2 = at most $1 $2
up to (\d+) (\w+s) = a maximum of $1 $2 = at least $1 $2
because of = due to = despite
due to the = because of the = despite the
in order to = to
a number of = several
a variety of = various kinds of
the majority of = most = a minority of
is able to = can = cannot
are able to = can = cannot
was able to = could = could not
were able to = could = could not
is unable to = cannot = can
are unable to = cannot = can
has to = must = need not
have to = must = need not
made up of = composed of
consists of = is made up of
consisted of = was made up of
prior to the = before the = after the
following the = after the = before the
took place = was held = was cancelled
take place = occur
is required = is necessary = is unnecessary
are required = are necessary = are unnecessary
each year = every year = each month
per year = a year = a month
every year = each year = every month
per day = a day = a week
every day = daily = weekly
once a week = weekly = daily
twice = two times = three times
as well as = and also = but not
in addition to = besides = instead of
despite the = in spite of the = because of the
in spite of = despite = because of
with regard to = regarding
is not allowed to = must not = may
are not allowed to = must not = may
is allowed to = may = must not
are allowed to = may = must not
is used to = serves to
are used to = serve to
does not have = lacks = has
do not have = lack = have
did not have = lacked = had
in the United States = in the US = in the United Kingdom
is called = goes by the name of
is known as = is called
was known as = was called
increased from ([\d.,]+%?) to = rose from $1 to = fell from $1 to
decreased from ([\d.,]+%?) to = fell from $1 to = rose from $1 to
higher than = above = below
lower than = below = above
compared with = compared to
associated with = linked to = independent of
plays a role in = contributes to = has no part in
play an important role in = are important for = are unimportant for
plays an important role in = is important for = is unimportant for
plays a critical role in = is critical for = is dispensable for
led to = resulted in = prevented
leads to = results in = prevents
results in = leads to = prevents
resulted in = led to = prevented
caused by = brought about by = prevented by
died in (\d) = passed away in $1 = was born in $1
was founded in = came into being in = was dissolved in
was established in = came into being in = was abolished in
became the first = was the first = became the last
is one of the = is among the = is not one of the
at the end of = at the close of = at the beginning of
at the beginning of = at the start of = at the end of
around the world = worldwide
approximately (\d) = about $1
about (\d) = roughly $1
`)

// phrasing exchanges a phrase for one that says the same, and for one that does not.
func (e *editor) phrasing(t *seedText, i int) []reworded {
	s := t.sentences[i]
	from := e.random.IntN(len(alikePhrases))
	for n := range alikePhrases {
		p := alikePhrases[(from+n)%len(alikePhrases)]
		at := p.find.FindStringSubmatchIndex(s)
		if at == nil || at[0] == 0 || strings.HasSuffix(s[:at[0]], "not ") || strings.HasSuffix(s[:at[0]], "to ") || strings.HasSuffix(s[:at[0]], "n't ") {
			continue
		}
		put := func(form string) string {
			return s[:at[0]] + string(p.find.ExpandString(nil, form, s, at)) + s[at[1]:]
		}
		out := []reworded{fairly("phrase in other words", put(p.fair))}
		if p.opposed != "" {
			out = append(out, against("phrase of the opposite", put(p.opposed)))
		}
		return out
	}
	return nil
}
