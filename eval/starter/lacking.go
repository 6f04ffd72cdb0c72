package starter

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/store"
)

// A name is the subject of a statement.
type name struct {
	text   string
	person bool
}

// maxNames is how many subjects are kept to ask in vain about.
const maxNames = 300

// appendName adds a name that is worth asking about.
func appendName(names []name, n name) []name {
	if len(names) < maxNames && !slices.Contains(names, n) && len(strings.Fields(n.text)) <= 4 {
		return append(names, n)
	}
	return names
}

// A lack is a question that documents may have nothing for, and the beginnings of words of
// which an answer would have one.
type lack struct {
	question string
	person   bool // of people; else of things
	words    *regexp.Regexp
}

func lackOf(question, words string, person bool) lack {
	return lack{question, person, regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(words, " ", "|") + `)`)}
}

// lacks are asked in turn.
var lacks = []lack{
	lackOf("When was %s renamed?", "rename name called known", false),
	lackOf("Where did %s study?", "stud educat school univers college degree graduat", true),
	lackOf("Who criticised %s?", "critic attack oppos condemn", false),
	lackOf("How much did %s cost?", "cost price paid pay dollar euro budget expens fund", false),
	lackOf("When did %s die?", "die death dead kill murder", true),
	lackOf("Who designed %s?", "design architect draw drew creat author", false),
	lackOf("How many people work for %s?", "employ work staff people personnel", false),
	lackOf("Who owns %s?", "own belong propert", false),
	lackOf("Whom did %s marry?", "marr wife husband spouse wed divorc", true),
	lackOf("Which award did %s win?", "award prize win won honou? medal", false),
	lackOf("When was %s sold?", "sold sell bought buy purchas acqui", false),
	lackOf("How tall is %s?", "tall height feet metres meters inches", true),
	lackOf("Who translated %s?", "translat", false),
	lackOf("What is the weight of %s?", "weigh weight kilogram pound tonne gram", false),
	lackOf("Where was %s born?", "born birth nativ hometown", true),
	lackOf("Who financed %s?", "financ fund sponsor donat invest", false),
	lackOf("How often is %s inspected?", "inspect audit examin review check", false),
	lackOf("What colour is %s?", "colou?r red blue green yellow black white", false),
	lackOf("What is the salary of %s?", "salar earn paid pay wage income", true),
	lackOf("Which company insures %s?", "insur", false),
	lackOf("Who restored %s?", "restor renovat repair rebuil", false),
	lackOf("When was %s cancelled?", "cancel abandon discontinu withdr", false),
	lackOf("Which instrument does %s play?", "instrument piano violin guitar play", true),
	lackOf("What is the population of %s?", "popul inhabit resident people", false),
}

// lacking asks n questions that the documents do not answer: about what they name, for what
// none of the documents that name it has a word of. There may be fewer.
func (g *gathering) lacking(ctx context.Context, entries iter.Seq2[store.Entry, error], n int) ([]candidate, error) {
	names := slices.DeleteFunc(slices.Clone(g.names), func(x name) bool { return !g.isName(x.text) })
	if len(names) < n { // then whatever is spoken of
		names = g.names
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

// saidIn returns the lacks of which a text has a word.
func saidIn(text string) []int {
	has := []int{}
	for l := range lacks {
		if lacks[l].words.MatchString(text) {
			has = append(has, l)
		}
	}
	return has
}

// lackingOf takes names and questions in turn.
func (g *gathering) lackingOf(names []name, said [][]bool, n int) []candidate {
	var made []candidate
	used, asked := make([]bool, len(names)), map[int]int{}
	for round := 0; len(made) < n && round <= n; round++ {
		for _, i := range spread(len(names), n) {
			if used[i] || len(made) == n {
				continue
			}
			for l, lack := range lacks {
				if said[i][l] || lack.person != names[i].person || asked[l] > round {
					continue
				}
				question := strings.Replace(lack.question, "%s", names[i].text, 1)
				used[i] = true
				asked[l]++
				made = append(made, candidate{kind: "unanswerable", Case: eval.Case{
					Question: question, Unanswerable: true, Slices: map[string]string{"type": "unanswerable"},
				}})
				break
			}
		}
	}
	return made
}

// isName reports whether a subject is a name: most of its words have a capital letter, and
// have one in the middle of sentences too.
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
