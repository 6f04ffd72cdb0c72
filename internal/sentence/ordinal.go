package sentence

import (
	"strings"
	"unicode"
)

// ordinal reports whether word, the digits before a stop, is a German ordinal that continues with
// the next word: "am 31. März", "im 19. Jahrhundert". It is not a number at the end of a sentence
// if before ends with a German article or preposition, or if a month follows whose name is German
// only.
func ordinal(before, word, next string) bool {
	if len(word) > 2 || strings.Trim(word, "0123456789") != "" || strings.Trim(word, "0") == "" {
		return false
	}
	noun := next
	if end := strings.IndexFunc(noun, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		noun = noun[:end]
	}
	german, month := months[noun]
	if month && german {
		return true
	}
	lead := strings.ToLower(lastWord(strings.TrimRightFunc(before, unicode.IsSpace)))
	if lead == "am" || lead == "den" { // English has these too
		return month
	}
	return leads[lead] && (month || noun != "" && !beginnings[noun])
}

// months are the German names of months; true if the English name differs.
var months = map[string]bool{
	"Januar": true, "Jänner": true, "Februar": true, "Feber": true, "März": true, "April": false, "Mai": true, "Juni": true,
	"Juli": true, "August": false, "September": false, "Oktober": true, "November": false, "Dezember": true,
}

// leads are the German words that precede an ordinal.
var leads = wordSet("der die das des dem im zum zur vom beim bis ab seit nach jeder jede jedes jeden jedem")

// beginnings are words that rather begin a German sentence than continue one after an ordinal.
var beginnings = wordSet(`Der Die Das Den Dem Des Ein Eine Einen Einem Es Er Sie Wir Ich Ihr Man Dies Diese Dieser Dieses Danach Dann Dort Da Dabei
	Dazu Darum Deshalb Wer Wie Wo Wann Was Wenn Weil Ob Als In Im An Am Auf Aus Bei Beim Bis Für Mit Nach Ab Seit Von Vom Vor Zu Zum Zur Um Und Aber
	Oder Auch Alle Jeder Jede Kein Keine Nur Hier Nicht Sind Ist Kann`)
