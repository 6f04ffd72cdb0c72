package prompted

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// Generator writes an answer in its own words and cites evidence by number for each statement. Its
// cautious output is an empty draft.
type Generator struct {
	Config
	Local role.Generator // used if the provider fails; nil: the cautious output
}

// draftReply is the reply requested from the model.
type draftReply struct {
	Shape      role.AnswerShape `json:"shape,omitempty"`
	Columns    []string         `json:"columns,omitempty"`
	Statements []statementReply `json:"statements"`
	Conflicts  []conflictReply  `json:"conflicts,omitempty"`
	Open       []string         `json:"open,omitempty"`
}

type statementReply struct {
	Text    string   `json:"text"`
	Sources []int    `json:"sources"`
	Item    bool     `json:"item,omitempty"`
	Cells   []string `json:"cells,omitempty"`
	Section string   `json:"section,omitempty"`
}

type conflictReply struct {
	One   int `json:"one"` // statement numbers, from 1
	Other int `json:"other"`
}

// Limits of a draft.
const (
	maxStatements = 40
	maxStatement  = 1200 // bytes
	maxColumns    = 8
)

var draftOutput = outputOf[draftReply]("answer")

// Generate implements role.Generator.
func (g Generator) Generate(ctx context.Context, c role.Caller, in role.GenerateInput) (role.Draft, error) {
	if len(in.Evidence) == 0 {
		return role.Draft{Statements: []role.Statement{}}, nil
	}
	var given []int
	torn := false
	asked := language.Guess(in.Question)
	best, order := contextOf(in)
	j := job[draftReply]{
		Config: g.Config, task: role.GeneratorRole, out: draftOutput(), maxTokens: 1500,
		write: reading(best, func(shown []passage) any {
			given = numbersOf(shown)
			shown = slices.Clone(shown)
			slices.SortStableFunc(shown, func(a, b passage) int { return cmp.Compare(order[a.number], order[b.number]) })
			return map[string]any{"Question": in.Question, "Parts": partsOf(in), "Passages": shown, "Language": asked, "Rejected": rejectedOf(in), "Advice": adviceOf(in), "SubAnswers": subAnswersOf(in)}
		}),
		check: func(r *draftReply) []string { return checkDraft(r, given, asked) },
		salvage: func(r *draftReply) ([]string, bool) {
			whole := *r
			notes := mendDraft(r, given, asked)
			torn = whole.tornIn(*r)
			return notes, len(r.Statements) > 0
		},
	}
	return typed[draftReply, role.Draft]{
		job:      j,
		local:    ifAny(g.Local != nil, func() (role.Draft, error) { return g.Local.Generate(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Draft { return role.Draft{Statements: []role.Statement{}, Outcome: o} },
		finish: func(reply draftReply, o role.Outcome) role.Draft {
			d := g.draftOf(reply, o)
			d.Torn = torn
			return d
		},
	}.do(ctx, c)
}

// contextOf returns the evidence to read, best first by the ranks of the parts, and each passage's
// position in the prompt, by the order of the context.
func contextOf(in role.GenerateInput) (best []passage, order map[int]int) {
	order = map[int]int{}
	for i, x := range excerptsOf(in.Evidence, in.Context) {
		ev := in.Evidence[slices.IndexFunc(in.Evidence, func(ev assay.Evidence) bool { return ev.Number == x.Evidence })]
		best = append(best, passageOf(ev.Number, ev.Hit, x.Text(ev)))
		order[ev.Number] = i
	}
	rank := map[int]int{}
	for _, p := range in.Parts {
		for i, n := range p.Evidence {
			if r, ok := rank[n]; !ok || i < r {
				rank[n] = i
			}
		}
	}
	slices.SortStableFunc(best, func(a, b passage) int {
		return cmp.Or(cmp.Compare(rank[a.number], rank[b.number]), cmp.Compare(a.number, b.number))
	})
	return best, order
}

// excerptsOf returns the context without excerpts of unknown evidence. If there is no context, it
// returns the whole evidence.
func excerptsOf(evidence []assay.Evidence, context []role.Excerpt) []role.Excerpt {
	if len(context) == 0 {
		for _, ev := range evidence {
			c := ev.Hit.Chunk
			context = append(context, role.Excerpt{Evidence: ev.Number, Spans: []role.Span{{Start: c.Start, End: c.Start + len(ev.Hit.Text)}}})
		}
	}
	return slices.DeleteFunc(slices.Clone(context), func(x role.Excerpt) bool {
		return !slices.ContainsFunc(evidence, func(ev assay.Evidence) bool { return ev.Number == x.Evidence })
	})
}

// partsOf lists the sub-questions of a question with several, one per line.
func partsOf(in role.GenerateInput) string {
	if len(in.Parts) < 2 {
		return ""
	}
	lines := make([]string, len(in.Parts))
	for i, p := range in.Parts {
		lines[i] = line(p.Question)
	}
	return strings.Join(lines, "\n")
}

// maxSubAnswer is the number of bytes shown of a sub-answer.
const maxSubAnswer = 1500

// subAnswersOf returns the sub-questions with their answers and the passages that these cite.
func subAnswersOf(in role.GenerateInput) []string {
	var list []string
	for _, sub := range in.SubAnswers {
		var answer []string
		for _, st := range sub.Statements {
			answer = append(answer, fmt.Sprintf("%s (passages %s)", line(st.Text), strings.Trim(strings.ReplaceAll(fmt.Sprint(st.Evidence), " ", ", "), "[]")))
		}
		list = append(list, "Question: "+line(sub.Question)+"\nAnswer: "+shorten(strings.Join(answer, " "), maxSubAnswer))
	}
	return list
}

// maxRejected is the number of rejected statements that a prompt shows.
const maxRejected = 12

// rejectedOf lists the statements of earlier drafts that were rejected, one per line.
func rejectedOf(in role.GenerateInput) string {
	var lines []string
	for _, r := range in.Rejected[:min(len(in.Rejected), maxRejected)] {
		lines = append(lines, "- "+shorten(line(r.Text), maxPhrase)+" ("+shorten(line(r.Reason), maxPhrase)+")")
	}
	if n := len(in.Rejected) - maxRejected; n > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", n))
	}
	return strings.Join(lines, "\n")
}

// maxAdvice is the number of pieces of advice that a prompt shows.
const maxAdvice = 8

// adviceOf lists the criticism of an earlier draft, one piece per line.
func adviceOf(in role.GenerateInput) string {
	var lines []string
	for _, a := range in.Advice[:min(len(in.Advice), maxAdvice)] {
		lines = append(lines, "- "+shorten(line(a), maxPhrase))
	}
	return strings.Join(lines, "\n")
}

// checkDraft returns the problems of a draft.
func checkDraft(r *draftReply, given []int, asked string) []string {
	var problems []string
	if n := len(r.Statements); n > maxStatements {
		problems = append(problems, fmt.Sprintf("there are %d statements; the limit is %d", n, maxStatements))
	}
	for i, s := range r.Statements {
		at := fmt.Sprintf("statement %d", i+1)
		for _, p := range unknown("passage", s.Sources, given) {
			problems = append(problems, at+": "+p)
		}
		switch {
		case strings.TrimSpace(s.Text) == "":
			problems = append(problems, at+" has no text")
		case len(s.Sources) == 0:
			problems = append(problems, at+" has no sources")
		case len(s.Text) > maxStatement:
			problems = append(problems, fmt.Sprintf("%s has %d bytes; the limit is %d", at, len(s.Text), maxStatement))
		}
		if n := len(s.Cells); n > 0 && n != len(r.Columns) {
			problems = append(problems, fmt.Sprintf("%s has %d cells, but the table has %d columns", at, n, len(r.Columns)))
		}
	}
	if r.Shape == role.Table && (len(r.Columns) < 2 || len(r.Columns) > maxColumns) {
		problems = append(problems, fmt.Sprintf("the table has %d columns; want 2 to %d", len(r.Columns), maxColumns))
	} else if r.Shape == role.Table && len(r.Statements) > 0 && !slices.ContainsFunc(r.Statements, isRow) {
		problems = append(problems, "no statement has the cells of a row of the table")
	}
	for _, c := range r.Conflicts {
		if !isPair(c, len(r.Statements)) {
			problems = append(problems, fmt.Sprintf("the conflict of statements %d and %d must name two different ones of the %d statements", c.One, c.Other, len(r.Statements)))
		}
	}
	if said := language.Guess(saidBy(r)); language.Differ(asked, said) {
		problems = append(problems, fmt.Sprintf("the answer is in language %q, but the question is in %q", said, asked))
	}
	return problems
}

func isRow(s statementReply) bool { return len(s.Cells) > 0 }

func isPair(c conflictReply, statements int) bool {
	return c.One >= 1 && c.Other >= 1 && c.One <= statements && c.Other <= statements && c.One != c.Other
}

// saidBy returns the text of all statements of a draft.
func saidBy(r *draftReply) string {
	texts := make([]string, len(r.Statements))
	for i, s := range r.Statements {
		texts[i] = s.Text
	}
	return strings.Join(texts, " ")
}

// mendDraft removes everything that checkDraft rejects, and returns notes on it.
func mendDraft(r *draftReply, given []int, asked string) []string {
	var notes []string
	at := map[int]int{} // the model's number → the new number
	var kept []statementReply
	for i, s := range r.Statements {
		invented := len(unknown("passage", s.Sources, given)) > 0
		s.Sources = known(s.Sources, given)
		if strings.TrimSpace(s.Text) == "" || len(s.Sources) == 0 || len(s.Text) > maxStatement || len(kept) == maxStatements {
			notes = append(notes, fmt.Sprintf("dropped a statement without a given source, without text or too long: %q", shorten(line(s.Text), 80)))
			continue
		}
		if invented {
			notes = append(notes, fmt.Sprintf("dropped an unknown passage from the sources of a statement: %q", shorten(line(s.Text), 80)))
		}
		kept = append(kept, s)
		at[i+1] = len(kept)
	}
	r.Statements = kept
	var conflicts []conflictReply
	for _, c := range r.Conflicts {
		if c = (conflictReply{at[c.One], at[c.Other]}); isPair(c, len(kept)) {
			conflicts = append(conflicts, c)
		}
	}
	r.Conflicts = conflicts
	ragged := slices.ContainsFunc(kept, func(s statementReply) bool { return isRow(s) && len(s.Cells) != len(r.Columns) })
	if r.Shape == role.Table && (len(r.Columns) < 2 || len(r.Columns) > maxColumns || !slices.ContainsFunc(kept, isRow)) || ragged {
		r.Shape, r.Columns = role.List, nil
		for i := range r.Statements {
			r.Statements[i].Cells, r.Statements[i].Item = nil, true
		}
		notes = append(notes, "the model's table is inconsistent and is shown as a list")
	}
	if said := language.Guess(saidBy(r)); language.Differ(asked, said) {
		notes = append(notes, fmt.Sprintf("the answer is in language %q, but the question is in %q", said, asked))
	}
	return notes
}

// tornIn reports whether kept, the rest of a draft, lacks an entry of a list, a table or a
// conflict.
func (r draftReply) tornIn(kept draftReply) bool {
	pairs := func(d draftReply) (n int) {
		for _, c := range d.Conflicts {
			if isPair(c, len(d.Statements)) {
				n++
			}
		}
		return n
	}
	parts := slices.ContainsFunc(r.Statements, func(s statementReply) bool { return s.Item || isRow(s) })
	return parts && len(kept.Statements) < len(r.Statements) || pairs(kept) < pairs(r)
}

// citationMarks matches the brackets that a model writes for citations in its text. Only the
// numbers in sources count.
var citationMarks = lazyregexp.New(`\s*\B\[(?:(?:passage|source|sources|passages) )?\d+(?:\s*[,;–-]\s*\d+)*\]`)

// draftOf converts a valid reply to the draft. Repeated statements are dropped, and their evidence
// is added to the first occurrence.
func (g Generator) draftOf(r draftReply, outcome role.Outcome) role.Draft {
	d := role.Draft{Statements: []role.Statement{}, Shape: r.Shape, Open: phrases(r.Open), Outcome: outcome}
	if len(d.Open) == 0 {
		d.Open = nil
	}
	at := make([]int, len(r.Statements)) // index of each statement in the draft
	for i, s := range r.Statements {
		st := role.Statement{Text: statementText(s.Text), Evidence: ascending(s.Sources), Item: s.Item}
		if g.Domain.hasSection(s.Section) {
			st.Section = s.Section
		}
		if r.Shape == role.Table {
			st.Cells = lines(s.Cells)
		}
		same := func(o role.Statement) bool {
			return strings.EqualFold(o.Text, st.Text) && slices.Equal(o.Cells, st.Cells)
		}
		if at[i] = slices.IndexFunc(d.Statements, same); at[i] >= 0 {
			first := &d.Statements[at[i]]
			first.Evidence = ascending(slices.Concat(first.Evidence, st.Evidence))
			continue
		}
		at[i] = len(d.Statements)
		d.Statements = append(d.Statements, st)
	}
	if r.Shape == role.Table {
		d.Columns = lines(r.Columns)
	}
	for _, c := range r.Conflicts {
		if one, other := at[c.One-1], at[c.Other-1]; one != other {
			d.Conflicts = append(d.Conflicts, [2]int{one, other})
		}
	}
	return d
}

// ascending returns the numbers sorted, without duplicates.
func ascending(numbers []int) []int { return slices.Compact(slices.Sorted(slices.Values(numbers))) }

// statementText returns a statement's text without citation marks, on one line unless it is code.
func statementText(text string) string {
	text = citationMarks.ReplaceAllString(text, "")
	if lexical.Code(text) {
		return strings.TrimSpace(visible.Text(text))
	}
	return visible.Line(text)
}

// lines returns the texts without citation marks, each on one line.
func lines(texts []string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, visible.Line(citationMarks.ReplaceAllString(t, "")))
	}
	return out
}
