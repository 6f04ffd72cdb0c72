package local

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Actor acts by rule. Its plan is that of [Planner]. It searches for the question, in the style
// [role.AllInOne] for all of its parts at once, and grades the results with [Grader]. As long as
// they are insufficient, it searches for the queries of the grader and of [Querier], and reads on if
// the best passage is cut off. For a comparison it searches for both sides and compares their
// documents. It is done if the results are sufficient, if the last calls brought no relevant
// passage, or if it has no further query. On MuSiQue (100 questions, ten passages) it finds all
// passages that are needed for 80 questions, one search for 76.
type Actor struct{ Reader llm.Reader }

// The tools that Actor calls, and the size of the pages of get_document. Package tool defines them;
// a test of package strategy compares them.
const (
	searchTool   = "search"
	documentTool = "get_document"
	compareTool  = "compare_documents"

	PageBytes = 3000
)

const maxURI = 2000 // bytes of a URI that a tool takes

// Plan implements role.Actor. It returns an error only when ctx has ended.
func (Actor) Plan(ctx context.Context, c role.Caller, question string) (role.Plan, error) {
	plan, err := Planner{}.Plan(ctx, c, question)
	if err != nil {
		return role.Plan{}, err
	}
	for i, text := range spelledOut(plan) {
		plan.SubQuestions[i].Text = text
	}
	return plan, nil
}

// Critique implements role.Actor by grading the results for the question and, if they do not answer
// it, for each open goal. The goals of a comparison are often mere names, which cannot be graded. It
// returns an error only when ctx has ended.
func (r Actor) Critique(ctx context.Context, c role.Caller, in role.ActInput) (role.SelfCritique, error) {
	plan, err := Planner{}.Plan(ctx, c, in.Question)
	if err != nil {
		return role.SelfCritique{}, err
	}
	a := acts{in: in, plan: plan, tried: searched(in)}
	grade, err := a.grade(ctx, c, r, in.Question, in.Terms)
	if err != nil {
		return role.SelfCritique{}, err
	}
	out := role.SelfCritique{Sufficient: grade.Verdict == assay.Sufficient, Missing: []string{}, NextSearches: []string{}, Covered: []int{}}
	out.Notes = grade.Notes
	goals, open := in.Current(), []string{}
	for i, g := range goals {
		done := g.Done || out.Sufficient
		if !done && len(goals) > 1 && plan.Shape != role.Comparison {
			of, err := a.grade(ctx, c, r, g.Text, nil)
			if err != nil {
				return role.SelfCritique{}, err
			}
			done = of.Verdict == assay.Sufficient
		}
		if done {
			out.Covered = append(out.Covered, i)
		} else {
			open = append(open, g.Text)
		}
	}
	if out.Sufficient {
		return out, nil
	}
	if out.Missing = append(out.Missing, grade.Missing...); 0 < len(open) && len(open) < len(goals) {
		out.Missing = open
	}
	queries, err := a.queries(ctx, c, grade)
	out.NextSearches = append(out.NextSearches, queries...)
	return out, err
}

// Act implements role.Actor. It returns an error only when ctx has ended.
func (r Actor) Act(ctx context.Context, c role.Caller, in role.ActInput) (role.Action, error) {
	plan, err := Planner{}.Plan(ctx, c, in.Question)
	if err != nil {
		return role.Action{}, err
	}
	a := acts{in: in, plan: plan, tried: searched(in)}
	if len(a.tried) == 0 {
		a.begin()
		return a.action("search for the question first")
	}
	found, err := a.judged(ctx, c, r)
	if err != nil {
		return role.Action{}, err
	}
	if a.compare(); len(a.calls) > 0 {
		return a.action("both sides were searched; compare their documents")
	}
	missing := "missing: " + oneLine(strings.Join(found.Missing, "; "))
	switch {
	case found.Sufficient:
		return role.Action{Thought: "the results answer the question", Done: true}, nil
	case in.Fresh == 0 && len(a.tried) > a.firstSearches():
		return role.Action{Thought: "the last calls found nothing relevant; " + missing, Done: true}, nil
	}
	a.next(found.NextSearches)
	return a.action(missing)
}

// judged returns the critique of the last step, or makes one if there is none.
func (a *acts) judged(ctx context.Context, c role.Caller, r Actor) (role.SelfCritique, error) {
	if made := a.in.Critique(); made != nil && made.Failure == "" {
		return *made, nil
	}
	in := a.in
	in.Plan, in.Steps = nil, slices.Clone(in.Steps)
	for i := range in.Steps {
		in.Steps[i].Plan = nil // without goals only the question is graded
	}
	return r.Critique(ctx, c, in)
}

// grade grades the results for a question.
func (a *acts) grade(ctx context.Context, c role.Caller, r Actor, question string, terms []assay.Term) (role.Grade, error) {
	in := role.GradeInput{Question: question, Hits: a.hits(), Terms: terms, Tried: a.tried, Floor: a.in.Floor}
	return Grader(r).Grade(ctx, c, in)
}

// hits returns the results, best first.
func (a *acts) hits() []assay.Hit {
	hits := make([]assay.Hit, len(a.in.Found))
	for i, ev := range a.in.Found {
		hits[i] = ev.Hit
	}
	return hits
}

// acts are the calls of one reply.
type acts struct {
	in    role.ActInput
	plan  role.Plan
	tried []string // queries
	calls []llm.ToolCall
}

// searched lists the queries of all calls so far.
func searched(in role.ActInput) []string {
	var out []string
	for _, u := range uses(in) {
		var a struct{ Query string }
		if u.Call.Name == searchTool && json.Unmarshal([]byte(u.Call.Arguments), &a) == nil && a.Query != "" {
			out = append(out, a.Query)
		}
	}
	return out
}

// uses are all calls so far.
func uses(in role.ActInput) []role.ToolUse {
	all := slices.Clone(in.Made)
	for _, s := range in.Steps {
		all = append(all, s.Uses...)
	}
	return all
}

// called reports whether a tool was called before.
func (a *acts) called(name string) bool {
	return slices.ContainsFunc(uses(a.in), func(u role.ToolUse) bool { return u.Call.Name == name })
}

// call adds a call, unless the reply has the most that one reply may make.
func (a *acts) call(name string, arguments any) {
	raw, err := json.Marshal(arguments)
	if err != nil || len(a.calls) >= max(1, a.in.Most) {
		return
	}
	a.calls = append(a.calls, llm.ToolCall{ID: fmt.Sprintf("local%d", len(a.calls)), Name: name, Arguments: string(raw)})
}

// search adds a search for a query that is new.
func (a *acts) search(query string) {
	const most = 400 // characters that a search takes
	query = strings.Join(strings.Fields(query), " ")
	for n := len(query); utf8.RuneCountInString(query) > most; n-- {
		query = strings.ToValidUTF8(query[:n-1], "")
	}
	if query == "" || slices.ContainsFunc(a.tried, func(t string) bool { return strings.EqualFold(t, query) }) {
		return
	}
	a.tried = append(a.tried, query)
	a.call(searchTool, map[string]any{"query": query})
}

// action returns the reply with the calls. Without calls the actor is done.
func (a *acts) action(thought string) (role.Action, error) {
	if len(a.calls) == 0 {
		return role.Action{Thought: "there is nothing else to search for; " + thought, Done: true}, nil
	}
	return role.Action{Thought: thought, Calls: a.calls}, nil
}

// begin searches for the question, and for its parts if they do not depend on each other.
func (a *acts) begin() {
	a.search(a.in.Question)
	if a.partly() {
		for _, sub := range a.plan.SubQuestions {
			a.search(sub.Text)
		}
	}
}

// partly reports whether the parts of the question are searched for at once.
func (a *acts) partly() bool {
	return a.plan.Shape == role.Comparison || a.in.Style == role.AllInOne && a.plan.Shape == role.Conjunction
}

// firstSearches returns the most searches that begin makes.
func (a *acts) firstSearches() int {
	if a.partly() {
		return 1 + len(a.plan.SubQuestions)
	}
	return 1
}

// leads reports whether a query has more than some of the question's words. One that does not would
// find passages that are relevant to these words and not to the question.
func (a *acts) leads(query string) bool {
	asked, words := contentOf(a.in.Question), contentOf(query)
	return query != "" && (!within(asked, words) || len(words) >= len(asked))
}

// compare compares the best documents of both sides of a comparison, once.
func (a *acts) compare() {
	if a.plan.Shape != role.Comparison || a.called(compareTool) {
		return
	}
	var documents []string
	for _, sub := range a.plan.SubQuestions {
		q := read(sub.Text, nil)
		best, most := "", 0.0
		for _, ev := range a.in.Found {
			share := q.coverage(stems(ev.Hit.Language, around(ev.Hit)...)) * ev.Hit.Scores.Relevance
			if share > most && !slices.Contains(documents, ev.Hit.URI) && len(ev.Hit.URI) <= maxURI {
				best, most = ev.Hit.URI, share
			}
		}
		if best != "" {
			documents = append(documents, best)
		}
	}
	if len(documents) == 2 {
		a.call(compareTool, map[string]any{"ids": documents, "aspect": clip(a.in.Question)})
	}
}

// clip returns a question, cut to the length that a tool takes.
func clip(question string) string {
	const most = 400
	if utf8.RuneCountInString(question) <= most {
		return question
	}
	return string([]rune(question)[:most])
}

// queries returns the queries of the grader and of the querier.
func (a *acts) queries(ctx context.Context, c role.Caller, grade role.Grade) ([]string, error) {
	var out []string
	if a.leads(grade.Query) {
		out = append(out, grade.Query)
		a.tried = append(a.tried, grade.Query)
	}
	next, err := Rewriter{}.Next(ctx, c, role.QueryInput{Question: a.in.Question, History: a.history(a.hits()), Gaps: grade.Missing})
	if err == nil && next.Gap != "" && a.leads(next.Query) {
		out = append(out, next.Query)
	}
	return out, err
}

// next adds searches for the queries, and reads on if the best passage is cut off.
func (a *acts) next(queries []string) {
	for _, query := range queries {
		a.search(query)
	}
	hits := a.hits()
	if len(hits) == 0 || a.called(documentTool) {
		return
	}
	if h := hits[0]; cutOff(h) && len(h.URI) <= maxURI {
		a.call(documentTool, map[string]any{"id": h.URI, "page": h.Chunk.End/PageBytes + 1})
	}
}

// history returns the queries so far. The results of the last one are the sentences of the best
// relevant passages.
func (a *acts) history(hits []assay.Hit) []role.Asked {
	const best = 5
	var out []role.Asked
	for _, query := range a.tried {
		out = append(out, role.Asked{Query: query})
	}
	var brought strings.Builder
	for _, h := range hits[:min(best, len(hits))] {
		if h.Scores.Relevance < a.in.Floor {
			break // its names are not about the question
		}
		for _, sp := range sentence.Spans(h.Text) {
			brought.WriteString(oneLine(h.Title+": "+h.Text[sp.Start:sp.End]) + "\n")
		}
	}
	if len(out) > 0 {
		out[len(out)-1].Brought = brought.String()
	}
	return out
}

// cutOff reports whether the text of a hit ends within a sentence.
func cutOff(h assay.Hit) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(h.Text, unicode.IsSpace))
	return !strings.ContainsRune(".!?\"')]}”’»。！？", last)
}
