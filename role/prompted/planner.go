package prompted

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// maxParts is how many sub-questions a plan may have.
const maxParts = 6

// Planner cuts a question into sub-questions that may need one another: one that has
// "#1" in the place of an answer needs the first. Which name was found there, and goes
// there, is found without a model. Its cautious output is the question as it stands.
type Planner struct {
	Config
	Local role.Planner // for when the provider fails; nil: the cautious output

	// Keys are the metadata keys that a sub-question may be narrowed by; none: no
	// plan has a filter.
	Keys []Key
}

// A Key is a metadata key that a planner may use.
type Key struct {
	Name  string            `json:"name"`
	Kinds []assay.ValueKind `json:"kinds"` // that its values have

	// Values are those of a key that has few, all of them: nothing is said to equal
	// another one. None: there are too many to list. A filter's value is always one
	// that the question names.
	Values []string `json:"values,omitempty"`
}

// planReply is what the model is asked for.
type planReply struct {
	Shape role.PlanShape `json:"shape,omitempty"`
	Parts []partReply    `json:"sub_questions"`
}

type partReply struct {
	Text       string           `json:"text"`
	Needs      []int            `json:"needs,omitempty"` // from 1
	Conditions []conditionReply `json:"conditions,omitempty"`
}

type conditionReply struct {
	Key      string   `json:"key"`
	Operator operator `json:"operator"`
	Value    string   `json:"value"`
}

// An operator is a comparison that a plan may make: those of a filter that
// compare with one value.
type operator string

var operators = []assay.FilterOp{
	assay.OpEquals, assay.OpNotEquals, assay.OpGreaterThan, assay.OpGreaterThanOrEquals, assay.OpLessThan, assay.OpLessThanOrEquals,
	assay.OpStartsWith, assay.OpStringContains, assay.OpListContains,
}

var planOutput = outputOf[planReply]("plan")

// Plan implements role.Planner.
func (p Planner) Plan(ctx context.Context, c role.Caller, question string) (role.Plan, error) {
	j := job[planReply]{
		Config: p.Config, role: role.PlannerRole, out: planOutput(), maxTokens: 600,
		write: p.write(question),
		check: func(r *planReply) []string { return p.check(question, r) },
		salvage: func(r *planReply) ([]string, bool) {
			return p.mend(question, r), len(r.Parts) > 0
		},
	}
	behind := stander[role.Plan]{
		role:    j.role,
		outcome: func(p *role.Plan) *role.Outcome { return &p.Outcome },
		cautious: func(o role.Outcome) role.Plan {
			return role.Plan{Shape: role.Single, SubQuestions: []role.SubQuestion{{Text: question}}, Outcome: o}
		},
	}
	if p.Local != nil {
		behind.local = func() (role.Plan, error) { return p.Local.Plan(ctx, c, question) }
	}
	reply, outcome, err := ask(ctx, c, j)
	switch {
	case failed(ctx, err):
		return behind.without(ctx, err)
	case err != nil:
		return role.Plan{}, err
	case outcome.Failure != "":
		return behind.unusable(ctx, outcome)
	}
	return p.planOf(question, reply, outcome), nil
}

// write shows the question, and of the keys those that fit.
func (p Planner) write(question string) func(prompt, int) (string, []string, bool) {
	lines := p.keyLines()
	return fitting(len(lines), "metadata keys", func(k int) any {
		return map[string]any{"Question": question, "Keys": strings.Join(lines[:k], "\n")}
	})
}

// keyLines describes the keys, one a line.
func (p Planner) keyLines() []string {
	const shown = 12
	var lines []string
	for _, k := range p.Keys {
		kinds := make([]string, len(k.Kinds))
		for i, kind := range k.Kinds {
			kinds[i] = string(kind)
		}
		l := line(k.Name) + " (" + strings.Join(kinds, " or ") + ")"
		if n := len(k.Values); n > 0 {
			l += ": " + line(strings.Join(k.Values[:min(n, shown)], ", "))
			if n > shown {
				l += ", …"
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// check says what of a plan is wrong.
func (p Planner) check(question string, r *planReply) []string {
	var problems []string
	if len(r.Parts) == 0 {
		problems = append(problems, "there are no sub-questions")
	}
	if len(r.Parts) > maxParts {
		problems = append(problems, fmt.Sprintf("there are %d sub-questions, at most %d are allowed", len(r.Parts), maxParts))
	}
	for i, part := range r.Parts {
		at := fmt.Sprintf("sub-question %d", i+1)
		if query(part.Text) == "" {
			problems = append(problems, at+" has no text")
		}
		if n := len(part.Text); n > mostPart(question, r) {
			problems = append(problems, fmt.Sprintf("%s has %d bytes, at most %d are allowed", at, n, mostPart(question, r)))
		}
		for _, n := range append(slices.Clone(part.Needs), places(question, part.Text)...) {
			if n < 1 || n > i {
				problems = append(problems, fmt.Sprintf("%s needs %d, which is no earlier sub-question", at, n))
			}
		}
		if first := slices.IndexFunc(r.Parts, func(o partReply) bool { return strings.EqualFold(line(o.Text), line(part.Text)) }); first < i {
			problems = append(problems, fmt.Sprintf("%s is the same as sub-question %d", at, first+1))
		}
	}
	return problems
}

// place matches where the answer to an earlier sub-question goes.
var place = lazyregexp.New(`#(\d{1,3})\b`)

// places returns the numbers of the sub-questions whose answers go into a text. What the
// question itself has is no such place.
func places(question, text string) []int {
	var list []int
	for _, m := range place.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil && !strings.Contains(question, m[0]) {
			list = append(list, n)
		}
	}
	return list
}

// mostPart is how long, in bytes, a sub-question may be: as long as the question
// where that is long. One alone stands for the question, whatever it says.
func mostPart(question string, r *planReply) int {
	if len(r.Parts) == 1 {
		return maxReply
	}
	return max(maxQuery, len(question))
}

// mend leaves out what check refuses, and notes it.
func (p Planner) mend(question string, r *planReply) []string {
	var notes []string
	at := map[int]int{} // number as the model has it → as it is now
	var kept []partReply
	for i, part := range r.Parts {
		same := slices.ContainsFunc(kept, func(o partReply) bool { return strings.EqualFold(line(o.Text), line(part.Text)) })
		if query(part.Text) == "" || len(part.Text) > mostPart(question, r) || same || len(kept) == maxParts {
			notes = append(notes, fmt.Sprintf("sub-question %q is left out: it is empty, too long, said before or one too many", shorten(line(part.Text), 80)))
			continue
		}
		if slices.ContainsFunc(places(question, part.Text), func(n int) bool { return at[n] == 0 }) {
			notes = append(notes, fmt.Sprintf("sub-question %q is left out: it has a place for the answer to one that is no earlier one", shorten(line(part.Text), 80)))
			continue
		}
		part.Text = place.ReplaceAllStringFunc(part.Text, func(slot string) string {
			if n, err := strconv.Atoi(slot[1:]); err == nil && at[n] > 0 && !strings.Contains(question, slot) {
				return fmt.Sprintf("#%d", at[n])
			}
			return slot
		})
		var needs []int
		for _, n := range part.Needs {
			if now, ok := at[n]; ok {
				needs = append(needs, now)
			} else {
				notes = append(notes, fmt.Sprintf("sub-question %q does not need %d, which is no earlier one", shorten(line(part.Text), 80), n))
			}
		}
		part.Needs = needs
		kept = append(kept, part)
		at[i+1] = len(kept)
	}
	r.Parts = kept
	return notes
}

// planOf turns a reply that is right into the plan. A filter that cannot be is left
// out, and a note says so: a plan is good without, and not worth another prompt.
func (p Planner) planOf(question string, r planReply, outcome role.Outcome) role.Plan {
	plan := role.Plan{Shape: r.Shape, Outcome: outcome}
	chained := false
	for _, part := range r.Parts {
		sub := role.SubQuestion{Text: line(part.Text)}
		for _, n := range append(slices.Clone(part.Needs), places(question, part.Text)...) {
			if !slices.Contains(sub.Needs, n-1) {
				sub.Needs = append(sub.Needs, n-1)
			}
		}
		chained = chained || len(sub.Needs) > 0
		for _, cond := range part.Conditions {
			f, err := p.filter(question, cond)
			if err != nil {
				plan.Notes = append(plan.Notes, role.PlannerRole+": a filter is left out: "+err.Error())
				continue
			}
			sub.Filter = assay.And(sub.Filter, f)
		}
		plan.SubQuestions = append(plan.SubQuestions, sub)
	}
	switch {
	case len(plan.SubQuestions) == 1:
		plan.Shape = role.Single
		plan.SubQuestions[0].Text = question // which nobody can put better than who asked
	case chained:
		plan.Shape = role.Chain
	case plan.Shape == role.Single || plan.Shape == "" || plan.Shape == role.Chain:
		plan.Shape = role.Conjunction
	}
	return plan
}

// filter returns a condition as a filter: of a known key, with a value of its
// kind that the question names.
func (p Planner) filter(question string, c conditionReply) (assay.Filter, error) {
	i := slices.IndexFunc(p.Keys, func(k Key) bool { return k.Name == c.Key })
	if i < 0 {
		return assay.Filter{}, fmt.Errorf("the key %q does not exist", shorten(line(c.Key), 64))
	}
	key := p.Keys[i]
	same := slices.IndexFunc(key.Values, func(v string) bool { return strings.EqualFold(v, c.Value) })
	switch equal := c.Operator == operator(assay.OpEquals) || c.Operator == operator(assay.OpListContains); {
	case same >= 0:
		c.Value = key.Values[same]
	case equal && len(key.Values) > 0:
		return assay.Filter{}, fmt.Errorf("%s is never %q; it is one of %s", key.Name, shorten(line(c.Value), 64), shorten(line(joined(key.Values)), 200))
	}
	if !p.named(question, key, c.Value) {
		return assay.Filter{}, fmt.Errorf("the question does not say that %s is %q", key.Name, shorten(line(c.Value), 64))
	}
	kinds := func(string) []assay.ValueKind { return key.Kinds }
	var refused error
	for _, v := range valuesOf(c.Value) {
		f := assay.Filter{Op: assay.FilterOp(c.Operator), Key: key.Name, Value: v}
		err := f.Check(kinds)
		if err == nil {
			return f, nil
		}
		refused = err
	}
	return assay.Filter{}, refused
}

// valuesOf returns what a value, written as text, may be, the likeliest first.
func valuesOf(text string) []assay.Value {
	var out []assay.Value
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		out = append(out, assay.NumberValue(n))
	}
	if b, err := strconv.ParseBool(text); err == nil {
		out = append(out, assay.BooleanValue(b))
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			out = append(out, assay.TimeValue(t))
		}
	}
	return append(out, assay.StringValue(text))
}

// named reports whether a question names a value of a key, as it stands or in
// another form; of a value that is true or false, the key.
func (p Planner) named(question string, key Key, value string) bool {
	if names(question, value) {
		return true
	}
	of := value
	if _, err := strconv.ParseBool(value); err == nil && slices.Contains(key.Kinds, assay.KindBoolean) {
		of = key.Name
	}
	asked := p.Domain.content(question)
	for stem := range p.Domain.content(of) {
		if asked[stem] && strings.ContainsFunc(stem, unicode.IsLetter) {
			return true
		}
	}
	return false
}

// names reports whether a question names a value: it has its words, or, of a
// number or a date, the first of its numbers.
func names(question, value string) bool {
	if numbers := surface.Numbers(strings.ReplaceAll(value, "-", " ")); len(numbers) > 0 && !strings.ContainsFunc(value, unicode.IsLetter) {
		return slices.Contains(surface.Numbers(strings.ReplaceAll(question, "-", " ")), numbers[0])
	}
	return strings.TrimSpace(value) != "" && strings.Contains(strings.ToLower(question), strings.ToLower(value))
}
