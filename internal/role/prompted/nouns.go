package prompted

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
)

// nouns is the vocabulary of a text, used to recognise names in a language that capitalises all
// nouns. There the form of a word does not distinguish a name from any other noun. A noun is taken
// for a name if neither it nor a related word occurs in the text and it is not an everyday noun.
// Some of the writer's own nouns are therefore rejected as names.
//
// Measured on XQuAD in German: of the 1317 sentences of its paragraphs, none has a name when
// compared with its own paragraph and 1271 have one when compared with another. Of 1190 questions,
// which people put into their own words, 259 have one compared with their paragraph and 1146
// compared with another.
type nouns struct {
	stems map[string]bool
	words []string // folded, of four letters and more
}

// newNouns returns the vocabulary of texts.
func newNouns(texts ...string) nouns {
	n := nouns{stems: map[string]bool{}}
	seen := map[string]bool{}
	for _, text := range texts {
		for _, t := range analysis.Tokens(text, "de") {
			n.stems[t.Term] = true
		}
		for _, w := range lexical.Words(text) {
			for part := range strings.SplitSeq(w, "-") {
				if f := folded(part); utf8.RuneCountInString(f) >= 4 && !seen[f] {
					seen[f] = true
					n.words = append(n.words, f)
				}
			}
		}
	}
	return n
}

// strangers returns the words of text that are names and occur in none of the vocabularies.
func strangers(text string, read ...nouns) []string {
	var out []string
	for _, sp := range sentence.Spans(text) {
		for piece := range strings.SplitSeq(text[sp.Start:sp.End], ": ") {
			words := lexical.Words(piece)
			for i, w := range words {
				if i == 0 && !named(words) {
					continue
				}
				for part := range strings.SplitSeq(w, "-") {
					if noun(part) && !slices.ContainsFunc(read, func(n nouns) bool { return n.has(part) }) {
						out = append(out, part)
					}
				}
			}
		}
	}
	return out
}

// noun reports whether a word may be a name: a noun, and not an everyday one.
func noun(word string) bool {
	first, size := utf8.DecodeRuneInString(word)
	if !unicode.IsUpper(first) || size == len(word) || !plainWord(word) {
		return false
	}
	return !everyday[folded(word)] && !abstract.MatchString(word)
}

// has reports whether the vocabulary contains a word in any form, or a related word. It is true for
// a word without tokens.
func (n nouns) has(word string) bool {
	tokens := analysis.Tokens(word, "de")
	for _, t := range tokens {
		if n.stems[t.Term] {
			return true
		}
	}
	return len(tokens) == 0 || n.related(folded(word))
}

// related reports whether a folded word has the same beginning as one in the vocabulary
// ("Kündigung", "kündigen"), is a compound of one, or is a part of a compound.
func (n nouns) related(word string) bool {
	const beginning = 5 // letters
	stem := ending.ReplaceAllString(word, "")
	for _, w := range n.words {
		switch {
		case len(w) >= beginning && len(word) >= beginning && w[:beginning] == word[:beginning],
			strings.HasPrefix(word, w), strings.HasSuffix(word, w), strings.HasSuffix(stem, w),
			len(word) >= 4 && (strings.HasPrefix(w, word) || strings.HasSuffix(w, word)):
			return true
		}
	}
	return false
}

// folded returns a word in lower case, without umlauts and ß.
func folded(word string) string { return umlauts.Replace(strings.ToLower(word)) }

var umlauts = strings.NewReplacer("ä", "a", "ö", "o", "ü", "u", "ß", "ss")

// named reports whether the first word of a sentence, which is always capitalised, is used as a
// name: a singular verb follows, and the word does not have the form of one that can precede a verb
// without being a noun.
func named(words []string) bool {
	if len(words) < 2 || adverb.MatchString(words[0]) || openers[folded(words[0])] {
		return false
	}
	next := words[1]
	if first, _ := utf8.DecodeRuneInString(next); unicode.IsUpper(first) {
		return !inflected.MatchString(words[0])
	}
	return germanSingular[next] || (strings.HasSuffix(next, "t") || strings.HasSuffix(next, "te")) && !notVerb[next]
}

var (
	// abstract matches nouns derived from other words, which names are not.
	abstract = lazyregexp.New(`(ung|heit|keit|ität|tion|ierung|nis)(en|s|se|ses|sen)?$`)

	// adverb matches words that precede a verb and are not nouns: adverbs, adjectives and
	// participles ("Zusätzlich gilt", "Vereinbart ist", "Ausgeschlossen wird").
	adverb = lazyregexp.New(`(lich|ig|isch|weise|end|bar|sam|haft|los|falls|mals|wärts|dem|en)$|^(Ge|Be|Ver|Er|Ent|Zer|Ein|Aus|Ab|An|Vor|Auf|Zu|Un|Mit|Nach).*t$|iert$`)

	// ending matches the usual inflections of a noun.
	ending = lazyregexp.New(`(es|en|s|n|e)$`)

	// inflected matches the endings of an adjective before a noun.
	inflected = lazyregexp.New(`e[nrsm]?$`)
)

var germanSingular = wordSet(`war wird muss kann darf soll will wurde hat hatte konnte musste sollte durfte wollte mag
kam ging gab sah fand nahm ließ hieß schrieb bot trug zog hielt stand lag starb begann gewann verlor`)

var notVerb = wordSet(`mit seit nicht erst fast oft jetzt samt laut meist selbst sonst heute beste erste letzte gute nächste damit somit weit insgesamt`)

// openers are words that open a sentence and are not nouns, folded.
var openers = wordSet(`daher bisher ferner spater fruher immer ausser weiter seither nachher vorher leider lieber wieder eher sicher
heute gestern morgen ohne beide gerade meist sonst jetzt dort dann danach davor dabei dafur dagegen damit daran darauf daraus darin daruber
darum darunter davon dazu hier hierbei hierfur hiermit hierzu so somit also nun nur noch oft fast erst bereits bis bevor sobald sofern soweit solange
wann warum wie wieso weshalb wo woher wohin wofur womit wozu was wer wen wem wessen welche welcher welches trotz wegen wahrend laut gemass statt
je jeder jede jedes niemand jemand etwas nichts alles vieles manches anders besonders stets bald spat fruh gern genug zuerst zuletzt zudem
schon auch allerdings hingegen jedoch indes gleichwohl gegebenenfalls insgesamt insbesondere umgekehrt mindestens hochstens wenigstens spatestens fruhestens`)

// everyday are nouns that any text may use: of time, measure and order, of people in general, and
// of texts. They are folded.
var everyday = wordSet(`tag tage tagen tages woche wochen monat monate monaten monats jahr jahre jahren jahres jahrhundert jahrhunderts stunde stunden minute minuten sekunde sekunden uhr
montag dienstag mittwoch donnerstag freitag samstag sonntag werktag werktage werktagen januar februar marz april mai juni juli august september oktober november dezember
zeit zeiten zeitpunkt zeitraum datum anfang beginn ende mitte dauer frist fristen mal male
euro cent dollar prozent meter kilometer gramm kilogramm liter grad zahl zahlen anzahl menge summe betrag hohe grosse lange breite halfte drittel viertel teil teile teilen
mensch menschen person personen leute mann manner frau frauen kind kinder herr herrn dame damen name namen wer
fall falle fallen falls grund grunde grunden art arten weise form formen stelle stellen punkt punkte punkten seite seiten beispiel beispiele regel regeln frage fragen antwort antworten
sache sachen ding dinge ziel ziele zweck folge folgen ursache ursachen wirkung unterschied unterschiede vergleich gegensatz zusammenhang rahmen hinblick bezug
text texte textes quelle quellen dokument dokumente dokumenten abschnitt abschnitte absatz kapitel angabe angaben hinweis hinweise thema themen liste tabelle
ort orte land lander stadt welt weg wege arbeit recht rechte pflicht pflichten kosten preis preise geld gruppe gruppen reihe bereich bereiche aufgabe aufgaben rolle problem probleme`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}
