package mutate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

const monthNames = `January|February|March|April|May|June|July|August|September|October|November|December`

var (
	months   = strings.Split(monthNames, "|")
	weekdays = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

	dayMonth = lazyregexp.New(`\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? (?:` + monthNames + `)\b`)
	monthDay = lazyregexp.New(`\b(?:` + monthNames + `) (\d{1,2})\b`)
	month    = lazyregexp.New(`\b(?:` + monthNames + `)\b`)
	weekday  = lazyregexp.New(`\b(Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)(s?)\b`)
	clock    = lazyregexp.New(`\b(\d{1,2}):(\d{2})\b`)
	hour     = lazyregexp.New(`\b(\d{1,2})( ?[ap]\.?m\b\.?)`)
	year     = lazyregexp.New(`\b(1[0-9]|20)\d\d\b`)
	measured = lazyregexp.New(`^ ?(?:%|bytes|euros?|pounds|words|tokens|requests|pages|hours|days|people|men|cycles|doses|eggs|objects|records|metres|km|kg|grams|members|questions)`)

	// leadsDate distinguishes the month of May from the verb.
	leadsDate = lazyregexp.New(`(?i)\b(?:in|of|by|until|since|from|to|and|every|each|early|late|mid|after|before|on)[ -]$`)
)

// dates changes one part of each date or time.
func (m *mutator) dates() {
	note := func(at []int) { m.dated = append(m.dated, [2]int{at[0], at[1]}) }
	days := append(dayMonth.FindAllStringSubmatchIndex(m.claim, -1), monthDay.FindAllStringSubmatchIndex(m.claim, -1)...)
	for _, at := range days {
		day, _ := strconv.Atoi(m.claim[at[2]:at[3]])
		end := at[3]
		if m.choice("ordinal", 2) == 0 {
			m.put(Date, at[2], end, strconv.Itoa(1+(day+3+m.choice("day", 20))%28))
		}
		note(at)
	}
	for _, at := range month.FindAllStringIndex(m.claim, -1) {
		text := m.claim[at[0]:at[1]]
		if text == "May" && !m.inDate(at[0], at[1]) && !leadsDate.MatchString(m.claim[:at[0]]) {
			continue
		}
		i := slices.Index(months, text)
		m.put(Date, at[0], at[1], months[(i+2+m.choice(text, 8))%12])
		note(at)
	}
	for _, at := range weekday.FindAllStringSubmatchIndex(m.claim, -1) {
		i := slices.Index(weekdays, m.claim[at[2]:at[3]])
		m.put(Date, at[2], at[3], weekdays[(i+1+m.choice("weekday", 5))%7])
		note(at)
	}
	for _, at := range clock.FindAllStringSubmatchIndex(m.claim, -1) {
		h, _ := strconv.Atoi(m.claim[at[2]:at[3]])
		m.put(Date, at[2], at[3], strconv.Itoa((h+1+m.choice("clock", 3))%24))
		note(at)
	}
	for _, at := range hour.FindAllStringSubmatchIndex(m.claim, -1) {
		h, _ := strconv.Atoi(m.claim[at[2]:at[3]])
		m.put(Date, at[2], at[3], strconv.Itoa(1+(h+m.choice("hour", 3))%12))
		note(at)
	}
	for _, at := range year.FindAllStringIndex(m.claim, -1) {
		if m.inDate(at[0], at[1]) || joined(m.claim, at[0], at[1]) || measured.MatchString(m.claim[at[1]:]) {
			continue
		}
		y, _ := strconv.Atoi(m.claim[at[0]:at[1]])
		m.put(Date, at[0], at[1], strconv.Itoa(y+[]int{-20, -10, -3, -1, 1, 2, 4, 11}[m.choice("year", 8)]))
		note(at)
	}
}

var (
	digits   = lazyregexp.New(`\d+(?:[.,]\d+)*`)
	numerals = strings.Fields("two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen")
	numeral  = lazyregexp.New(`(?i)\b(?:` + strings.Join(numerals, "|") + `)\b`)
	tens     = strings.Fields("twenty thirty forty fifty sixty seventy eighty ninety")
	ten      = lazyregexp.New(`(?i)\b(?:` + strings.Join(tens, "|") + `)\b`)
)

// numbers changes numbers that are not part of a date or a name: to another number of the source,
// to a nearby one, or to a multiple.
func (m *mutator) numbers() {
	m.all(digits, func(at []int) {
		if joined(m.claim, at[0], at[1]) {
			return
		}
		old := m.claim[at[0]:at[1]]
		if near := m.neighbours(digits, old); len(near) > 0 && m.choice("near"+old, 2) == 0 {
			m.put(Number, at[0], at[1], near[m.choice(old, len(near))])
			return
		}
		for way := range 4 {
			if n := another(old, (way+m.choice(old, 4))%4); !slices.Contains(digits.FindAllString(m.claim, -1), n) {
				m.put(Number, at[0], at[1], n)
				return
			}
		}
	})
	words := func(list []string) func(at []int) {
		return func(at []int) {
			if joined(m.claim, at[0], at[1]) {
				return
			}
			i := slices.Index(list, strings.ToLower(m.claim[at[0]:at[1]]))
			m.put(Number, at[0], at[1], list[(i+1+m.choice("word", 3))%len(list)])
		}
	}
	m.all(numeral, words(numerals))
	m.all(ten, words(tens))
}

// neighbours returns the other numbers of the source that the claim does not contain.
func (m *mutator) neighbours(re *lazyregexp.Regexp, old string) []string {
	var out []string
	for _, at := range re.FindAllStringIndex(m.source, -1) {
		n := m.source[at[0]:at[1]]
		if joined(m.source, at[0], at[1]) || n == old || strings.Contains(m.claim, n) || slices.Contains(out, n) || len(n) > len(old)+2 || year.MatchString(n) {
			continue
		}
		out = append(out, n)
	}
	return out
}

// another returns a different number in the format of old.
func another(old string, way int) string {
	plain := strings.ReplaceAll(old, ",", "")
	n, err := strconv.Atoi(plain)
	if err != nil || len(plain) > 9 || strings.Contains(old, ".") || way == 0 && n > 99 {
		i := strings.IndexFunc(old, func(r rune) bool { return r >= '1' && r <= '9' }) // change one digit
		if i < 0 {
			return "1" + old
		}
		d := old[i] - '0'
		return old[:i] + string('1'+(d+byte(way)+1)%9) + old[i+1:]
	}
	switch way {
	case 0:
		n += 1
	case 1:
		n *= 2
	case 2:
		n *= 3
	case 3:
		n += max(n/5, 1)
	}
	if n == 0 {
		n = 4
	}
	text := strconv.Itoa(n)
	if strings.Contains(old, ",") && len(text) > 3 {
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
	}
	return text
}

// joined reports whether text[start:end] is only part of a word, such as the 8 of "uint8".
func joined(text string, start, end int) bool {
	letter := func(b byte) bool {
		return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b >= '0' && b <= '9' || b >= 0x80 && b != 0xc2 && b != 0xe2
	}
	if start > 0 && (letter(text[start-1]) || text[start-1] == '=' || text[start-1] == '(' && end < len(text) && text[end] != ')' && letter(text[end])) {
		return true
	}
	if start > 1 && (text[start-1] == '-' || text[start-1] == '.') && letter(text[start-2]) {
		return true // AES-256, SHA-256, v1.2
	}
	return end < len(text) && letter(text[end]) && !strings.HasPrefix(text[end:], "km") && text[end] != 'p' && text[end] != 'a'
}
