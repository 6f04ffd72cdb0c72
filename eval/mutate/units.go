package mutate

import (
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// otherUnit maps a unit to its replacement.
var otherUnit = map[string]string{
	"second": "minute", "minute": "hour", "hour": "day", "day": "week", "week": "month", "month": "year", "year": "month", "quarter": "year",
	"nanosecond": "millisecond", "millisecond": "second", "decade": "century",
	"euro": "dollar", "dollar": "euro", "pound": "euro", "€": "$", "$": "€", "£": "€",
	"km": "miles", "kilometre": "mile", "metre": "foot", "centimetre": "inch", "cm": "mm", "mm": "cm", "millimetre": "centimetre", "km²": "hectares",
	"kg": "g", "kilogram": "gram", "gram": "kilogram", "tonne": "kilogram", "g": "mg", "ton": "pound",
	"litre": "gallon", "ml": "litres", "microlitre": "millilitre", "µl": "ml",
	"°C": "°F", "Celsius": "Fahrenheit",
	"bit": "byte", "byte": "kilobyte", "terabyte": "gigabyte", "Wh": "kWh", "watt-hour": "kilowatt-hour",
	"daily": "weekly", "weekly": "monthly", "monthly": "weekly", "annually": "monthly", "yearly": "monthly",
	"billion": "million", "million": "billion",
}

var (
	unitWord = lazyregexp.New(`(?i)\b(?:nano|milli)?(second|minute|hour|day|week|month|year|decade|quarter|euro|dollar|pound|kilometre|metre|centimetre|millimetre|kilogram|gram|tonne|ton|microlitre|litre|byte|bit|terabyte|watt-hour)(s?)\b`)
	unitSign = lazyregexp.New(`€|£|\$|°C|km²|\b(?:km|cm|mm|kg|ml|Wh|Celsius|daily|weekly|monthly|annually|yearly|billion|million)\b|µl|\bg\b`)

	// counted matches the text before a unit that measures something.
	counted = lazyregexp.New(`(?i)(?:\d|\b(?:one|` + strings.Join(numerals, "|") + `|` + strings.Join(tens, "|") + `|half|hundred|thousand|million|billion|dozen|an?|per|each|every|once|monthly|metric|working|full|following|few))[ -]?(?:(?:a|an|metric|working|whole|or two|square|about)[ -])?$`)
)

// units changes the units of measurements and of durations.
func (m *mutator) units() {
	m.all(unitWord, func(at []int) {
		word := m.claim[at[2]:at[3]]
		if at[0] != at[2] || !counted.MatchString(m.claim[:at[0]]) || strings.HasPrefix(m.claim[at[1]:], " card") {
			return
		}
		other := otherUnit[strings.ToLower(word)]
		plural := m.claim[at[4]:at[5]]
		switch {
		case other == "foot" && plural != "":
			other, plural = "feet", ""
		case other == "inch" && plural != "":
			plural = "es"
		case other == "century" && plural != "":
			other, plural = "centuries", ""
		}
		text := other + plural
		start := at[0]
		if before := m.claim[:start]; strings.HasSuffix(strings.ToLower(before), "an ") && !strings.ContainsAny(other[:1], "aeiou") {
			start -= 2
			text = " " + text
		} else if strings.HasSuffix(strings.ToLower(before), " a ") && other == "hour" {
			start--
			text = "n " + text
		}
		m.put(Unit, start, at[1], text)
	})
	m.all(unitSign, func(at []int) {
		m.put(Unit, at[0], at[1], otherUnit[m.claim[at[0]:at[1]]])
	})
}
