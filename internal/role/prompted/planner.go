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
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/role"
)

// maxParts is the maximum number of sub-questions of a plan.
const maxParts = 6

// Planner splits a question into sub-questions that may depend on one another: one with "#1" in
// place of a name needs the answer to the first. The name that replaces it is found without a
// model. The cautious output is the question unchanged.
type Planner struct {
	Config
	Local role.Planner // used if the provider fails or no reply is usable; nil: the cautious output

	// Keys are the metadata keys by which a sub-question may be filtered. If there are none, plans
	// have no filters.
	Keys []Key
}

// A Key is a metadata key that a planner may use.
type Key struct {
	Name  string            `json:"name"`
	Kinds []assay.ValueKind `json:"kinds"` // the kinds of its values

	// Values are all values of a key with few. A condition cannot require equality with any other
	// value. It is empty if there are too many to list. A filter's value is always one that the
	// question names.
	Values []string `json:"values,omitempty"`
}

// planReply is the reply requested from the model.
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

// An operator is a comparison that a plan may use: a filter operator with a single value.
type operator string

var operators = []assay.FilterOp{
	assay.OpEquals, assay.OpNotEquals, assay.OpGreaterThan, assay.OpGreaterThanOrEquals, assay.OpLessThan, assay.OpLessThanOrEquals,
	assay.OpStartsWith, assay.OpStringContains, assay.OpListContains,
}

var planOutput = outputOf[planReply]("plan")

// Plan implements role.Planner.
func (p Planner) Plan(ctx context.Context, c role.Caller, question string) (role.Plan, error) {
	return typed[planReply, role.Plan]{
		job: job[planReply]{
			Config: p.Config, task: role.PlannerRole, out: planOutput(), maxTokens: 600,
			write:   p.write(question),
			check:   func(r *planReply) []string { return p.check(question, r) },
			salvage: func(r *planReply) ([]string, bool) { return p.mend(question, r), len(r.Parts) > 0 },
		},
		local:           ifAny(p.Local != nil, func() (role.Plan, error) { return p.Local.Plan(ctx, c, question) }),
		localIfUnusable: true,
		cautious: func(o role.Outcome) role.Plan {
			return role.Plan{Shape: role.Single, SubQuestions: []role.SubQuestion{{Text: question}}, Outcome: o}
		},
		finish: func(reply planReply, o role.Outcome) role.Plan { return p.planOf(question, reply, o) },
	}.do(ctx, c)
}

// write shows the question and as many of the keys as fit.
func (p Planner) write(question string) func(prompt, int) (string, []string, bool) {
	lines := p.keyLines()
	return fitting(len(lines), "metadata keys", func(k int) any {
		return map[string]any{"Question": question, "Keys": strings.Join(lines[:k], "\n")}
	})
}

// keyLines describes the keys, one per line.
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

// check returns the problems of a plan.
func (p Planner) check(question string, r *planReply) []string {
	var problems []string
	if len(r.Parts) == 0 {
		problems = append(problems, "there are no sub-questions")
	}
	if len(r.Parts) > maxParts {
		problems = append(problems, fmt.Sprintf("there are %d sub-questions; the limit is %d", len(r.Parts), maxParts))
	}
	for i, part := range r.Parts {
		at := fmt.Sprintf("sub-question %d", i+1)
		if query(part.Text) == "" {
			problems = append(problems, at+" has no text")
		}
		if n := len(part.Text); n > mostPart(question, r) {
			problems = append(problems, fmt.Sprintf("%s has %d bytes; the limit is %d", at, n, mostPart(question, r)))
		}
		for _, n := range append(slices.Clone(part.Needs), places(question, part.Text)...) {
			if n < 1 || n > i {
				problems = append(problems, fmt.Sprintf("%s needs %d, which is not an earlier sub-question", at, n))
			}
		}
		if first := slices.IndexFunc(r.Parts, func(o partReply) bool { return strings.EqualFold(line(o.Text), line(part.Text)) }); first < i {
			problems = append(problems, fmt.Sprintf("%s is the same as sub-question %d", at, first+1))
		}
	}
	return problems
}

// place matches a placeholder for the answer to an earlier sub-question.
var place = lazyregexp.New(`#(\d{1,3})\b`)

// places returns the numbers of the sub-questions whose answers are inserted into text. Matches
// that also occur in the question are not placeholders.
func places(question, text string) []int {
	var list []int
	for _, m := range place.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil && !strings.Contains(question, m[0]) {
			list = append(list, n)
		}
	}
	return list
}

// mostPart returns the maximum length of a sub-question in bytes, which is at least the length of
// the question. A single sub-question has no such limit, because the question itself replaces it.
func mostPart(question string, r *planReply) int {
	if len(r.Parts) == 1 {
		return maxReply
	}
	return max(maxQuery, len(question))
}

// mend removes everything that check rejects, and returns notes on it.
func (p Planner) mend(question string, r *planReply) []string {
	var notes []string
	at := map[int]int{} // the model's number → the new number
	var kept []partReply
	for i, part := range r.Parts {
		same := slices.ContainsFunc(kept, func(o partReply) bool { return strings.EqualFold(line(o.Text), line(part.Text)) })
		if query(part.Text) == "" || len(part.Text) > mostPart(question, r) || same || len(kept) == maxParts {
			notes = append(notes, fmt.Sprintf("dropped sub-question %q: empty, too long, repeated or over the limit", shorten(line(part.Text), 80)))
			continue
		}
		if slices.ContainsFunc(places(question, part.Text), func(n int) bool { return at[n] == 0 }) {
			notes = append(notes, fmt.Sprintf("dropped sub-question %q: it refers to the answer to one that is not an earlier sub-question", shorten(line(part.Text), 80)))
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
				notes = append(notes, fmt.Sprintf("dropped from sub-question %q the need for %d, which is not an earlier one", shorten(line(part.Text), 80), n))
			}
		}
		part.Needs = needs
		kept = append(kept, part)
		at[i+1] = len(kept)
	}
	r.Parts = kept
	return notes
}

// planOf converts a valid reply to the plan. An invalid filter is dropped with a note, because the
// plan works without it and another prompt is not worth the cost.
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
				plan.Notes = append(plan.Notes, role.PlannerRole+": dropped a filter: "+err.Error())
				continue
			}
			sub.Filter = assay.And(sub.Filter, f)
		}
		plan.SubQuestions = append(plan.SubQuestions, sub)
	}
	switch {
	case len(plan.SubQuestions) == 1:
		plan.Shape = role.Single
		plan.SubQuestions[0].Text = question // the user's own wording
	case chained:
		plan.Shape = role.Chain
	case plan.Shape == role.Single || plan.Shape == "" || plan.Shape == role.Chain:
		plan.Shape = role.Conjunction
	}
	return plan
}

// filter converts a condition to a filter: of a known key, with a value of its kind that the
// question names.
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

// valuesOf returns the possible values of a text, the likeliest first.
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

// named reports whether a question names a value of a key, literally or in another form. A boolean
// value may also be named by its key.
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

// names reports whether a question names a value: it contains the words of the value or, for a
// number or a date, the first of its numbers.
func names(question, value string) bool {
	if numbers := lexical.Numbers(strings.ReplaceAll(value, "-", " ")); len(numbers) > 0 && !strings.ContainsFunc(value, unicode.IsLetter) {
		return slices.Contains(lexical.Numbers(strings.ReplaceAll(question, "-", " ")), numbers[0])
	}
	return strings.TrimSpace(value) != "" && strings.Contains(strings.ToLower(question), strings.ToLower(value))
}
