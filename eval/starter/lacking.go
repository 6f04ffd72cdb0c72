package starter

import (
	"context"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/store"
)

// A name is the subject of a statement.
type name struct {
	text   string
	person bool
}

// maxNames is the largest number of subjects kept for unanswerable questions.
const maxNames = 300

// appendName adds a name if it is new, has at most four words and the limit allows it.
func appendName(names []name, n name) []name {
	if len(names) < maxNames && !slices.Contains(names, n) && len(strings.Fields(n.text)) <= 4 {
		return append(names, n)
	}
	return names
}

// A sort is a bit set of the kinds of thing that a name can denote.
type sort int

const (
	thing  sort = 1 << iota // also the default
	person                  // a person
	plain                   // an unnamed thing, "a visitor badge"
	place                   // an organisation, a building or a place: has employees, owners and builders
)

// sortOf returns the kind of thing that a name denotes.
func (n name) sortOf() sort {
	switch {
	case n.person:
		return person
	case plainThing.MatchString(n.text):
		return plain
	}
	for w := range strings.FieldsSeq(n.text) {
		if first, _ := utf8.DecodeRuneInString(w); unicode.IsUpper(first) && places[strings.ToLower(w)] {
			return place
		}
	}
	return thing
}

// places lists words that occur in names of organisations, buildings and places.
var places = wordSet(`company university college school institute association society club league museum house park bank station airport hospital bridge
 castle palace tower canal church theatre theater library office team department ministry council committee court foundation corporation inc ltd party
 cathedral abbey hall stadium hotel port harbour street`)

// A lack is a common question that documents may not answer, with the stems of words of which an
// answer would contain one.
type lack struct {
	question string
	of       sort // one kind or several
	words    *lazyregexp.Regexp
}

func lackOf(question, words string, of sort) lack {
	return lack{question, of, lazyregexp.New(`(?i)\b(?:` + strings.ReplaceAll(words, " ", "|") + `)`)}
}

// lacks are used in turn. Each asks for a property that any name of the sort has, so that the
// question makes sense to someone who has not read the documents.
var lacks = []lack{
	lackOf("How much does %s cost?", "cost price paid pay fee dollar euro budget expens fund charge free", thing),
	lackOf("Where did %s study?", "stud educat school univers college degree graduat", person),
	lackOf("How many people work for %s?", "employ work staff people personnel", place),
	lackOf("Who is responsible for %s?", "responsib charge lead led head manag maintain own", thing|place),
	lackOf("In which year was %s introduced?", "introduc since year invent new added 19\\d\\d 20\\d\\d", plain),
	lackOf("When did %s die?", "die death dead kill murder", person),
	lackOf("Who owns %s?", "own belong propert", place),
	lackOf("What will replace %s?", "replac supersed success deprecat obsolet instead", thing),
	lackOf("Whom did %s marry?", "marr wife husband spouse wed divorc", person),
	lackOf("Who designed %s?", "design architect draw drew creat author", place),
	lackOf("Who was the first to propose %s?", "propos suggest idea invent", thing),
	lackOf("Which award did %s win?", "award prize win won honou? medal", person),
	lackOf("How is %s financed?", "financ fund sponsor donat invest money budget", place),
	lackOf("Which company sponsors %s?", "sponsor fund financ donat", thing),
	lackOf("Where was %s born?", "born birth nativ hometown", person),
	lackOf("When is %s closed?", "clos shut open hours holiday", place),
	lackOf("How often is %s reviewed?", "inspect audit examin review check", thing),
	lackOf("Who invented %s?", "invent author creat design propos introduc", plain),
	lackOf("What is the salary of %s?", "salar earn paid pay wage income", person),
	lackOf("Who insures %s?", "insur", place),
	lackOf("What is %s called in German?", "german deutsch translat language call", plain),
	lackOf("What is %s named after?", "name called after", thing|place),
	lackOf("Which languages does %s speak?", "speak spoke languag fluent", person),
	lackOf("Who criticised %s?", "critic attack oppos condemn", thing|person),
}

// lacking returns up to n questions that the documents do not answer. Each asks about a name in the
// documents, for a property for which no document with that name has any of the expected words.
func (g *gathering) lacking(ctx context.Context, entries iter.Seq2[store.Entry, error], n int) ([]candidate, error) {
	names := slices.DeleteFunc(slices.Clone(g.names), func(x name) bool { return !g.isName(x.text) || ofCode(x.text) })
	if len(names) < n { // then unnamed things too
		for _, x := range g.names {
			if plainThing.MatchString(x.text) && len(names) < maxNames {
				names = append(names, x)
			}
		}
	}
	if n <= 0 || len(names) == 0 {
		return nil, nil
	}
	said := make([][]bool, len(names)) // by name and lack
	for i := range said {
		said[i] = make([]bool, len(lacks))
	}
	for e, err := range entries {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		var has []int
		for i, x := range names {
			if !strings.Contains(e.Document.Text, x.text) {
				continue
			}
			if has == nil {
				has = saidIn(e.Document.Text)
			}
			for _, l := range has {
				said[i][l] = true
			}
		}
	}
	return g.lackingOf(names, said, n), nil
}

// saidIn returns the indexes of the lacks for which a text has one of the words.
func saidIn(text string) []int {
	has := []int{}
	for l := range lacks {
		if lacks[l].words.MatchString(text) {
			has = append(has, l)
		}
	}
	return has
}

// lackingOf pairs names with questions in turn, and falls back to unnamed things if there are not
// enough names. The questions vary, since a set with a single question measures little.
func (g *gathering) lackingOf(names []name, said [][]bool, n int) []candidate {
	var made []candidate
	used, asked := make([]bool, len(names)), map[int]int{}
	take := func(round int, unnamed bool) {
		for _, i := range spread(len(names), n) {
			of := names[i].sortOf()
			if used[i] || len(made) == n || (of == plain) != unnamed {
				continue
			}
			for l, lack := range lacks {
				if said[i][l] || lack.of&of == 0 || asked[l] > min(round, n/5) {
					continue
				}
				question := strings.Replace(lack.question, "%s", names[i].text, 1)
				used[i] = true
				asked[l]++
				made = append(made, candidate{kind: "unanswerable", Case: testset.Case{
					Question: question, Unanswerable: true, Slices: map[string]string{"type": "unanswerable"},
				}})
				break
			}
		}
	}
	for _, unnamed := range []bool{false, true} {
		for round := 0; len(made) < n && round <= n; round++ {
			take(round, unnamed)
		}
	}
	return made
}

// ofCode reports whether a name is an identifier or symbol from program text, such as "RecvExpr",
// "r27" or "SP". Questions about cost and the like make no sense for these.
func ofCode(text string) bool {
	for w := range strings.FieldsSeq(text) {
		if camel.MatchString(w) || strings.ContainsAny(w, "_.()/") {
			return true
		}
	}
	return len(text) < 3 || strings.IndexFunc(text, unicode.IsDigit) >= 0 && !strings.Contains(text, " ")
}

var camel = lazyregexp.New(`\p{Ll}\p{Lu}`)

// plainThing matches a thing named by its kind alone, without details that a question would have to
// repeat: "a visitor badge".
var plainThing = lazyregexp.New(`^an? [a-z]+(?: [a-z]+)?$`)

// isName reports whether a subject is a name: most of its words are capitalized, and are
// capitalized in the middle of sentences too.
func (g *gathering) isName(text string) bool {
	capitals, others := 0, 0
	for w := range strings.FieldsSeq(text) {
		switch {
		case w == "the" || w == "of":
		case !unicode.IsUpper(rune(w[0])):
			others++
		case !g.proper(w):
			return false
		default:
			capitals++
		}
	}
	return capitals > others
}
