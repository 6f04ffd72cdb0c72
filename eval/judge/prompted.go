package judge

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Prompted judges with a language model, in one call per answer. The call is repeated at most twice
// while the reply cannot be used. The answer, the passages and the references are data in the
// prompt. Measures that are missing from the last reply, out of range or contradictory are not
// judged, and no value is filled in. An answer that does not fit into the model's window with its
// passages is not judged at all.
//
// A model favours answers that it wrote. Judge with another one.
type Prompted struct {
	Model  llm.Model
	Caller func() role.Caller // returns the caller for one answer's calls; nil: the model is called directly
}

// Name implements Judge.
func (p Prompted) Name() string { return p.Model.Model() }

// The reply tokens for the scores with their reasons, for each claim and for each statement of the
// reference answer.
const (
	scoresTokens    = 400
	claimTokens     = 80
	statementTokens = 20
)

// A reply is the form of the model's answer.
type reply struct {
	Claims       []claimReply     `json:"claims"`
	Reference    []referenceReply `json:"reference,omitempty"`
	Correctness  *scoreReply      `json:"correctness,omitempty"`
	Completeness *scoreReply      `json:"completeness,omitempty"`
	Harmfulness  *scoreReply      `json:"harmfulness,omitempty"`
	Relevance    *scoreReply      `json:"relevance,omitempty"`
}

type claimReply struct {
	Claim  int    `json:"claim"` // from 1
	Held   bool   `json:"held"`
	Cited  bool   `json:"cited"`
	Alone  []int  `json:"alone"`
	Needed []int  `json:"needed"`
	Right  string `json:"right"` // "yes", "no", "unknown"
}

type referenceReply struct {
	Statement int  `json:"statement"` // from 1
	Said      bool `json:"said"`
}

type scoreReply struct {
	Reason string  `json:"reason,omitempty"`
	Score  float64 `json:"score"` // 0 to highest
}

// highest is the best score. The scale is of whole numbers, which models distinguish better than
// fractions.
const highest = 10

//go:embed prompts/judge.tmpl
var judgeTemplate string

var judging = prompted.NewTask[reply]("judge_answer", judgeTemplate, nil)

// Judge implements Judge.
func (p Prompted) Judge(ctx context.Context, in Input) (Judgement, error) {
	if in.Refused {
		return refused(p.Name(), judging.Prompt(), in), ctx.Err()
	}
	j := newJudgement(p.Name(), judging.Prompt())
	var statements []string
	if len(in.References) > 0 {
		statements = referenceClaims(in.Question, in.References[0])
	}
	caller := &metered{caller: p.caller()}
	out, outcome, err := judging.Do(ctx, caller, prompted.Sheet[reply]{
		Model: p.Model, Data: sheetOf(in, statements),
		MaxTokens: scoresTokens + claimTokens*len(in.Claims) + statementTokens*len(statements),
		Check: func(r *reply) []string {
			var problems []string
			for _, wrong := range faults(*r, in, len(statements)) {
				problems = append(problems, wrong.why)
			}
			return problems
		},
	})
	j.Usage = caller.usage
	if err != nil {
		return j, err
	}
	if outcome.Failure != "" {
		for _, name := range asked(in) {
			j.not(name, outcome.Failure)
		}
		return j, nil
	}
	p.take(&j, out, in, len(statements))
	return j, nil
}

// asked returns the measures that the model is asked for.
func asked(in Input) []string {
	names := []string{Harmfulness, Relevance}
	if len(in.Claims) > 0 {
		names = append(names, ClaimMeasures)
	}
	if len(in.References) > 0 {
		names = append(names, Correctness, Completeness)
	}
	return names
}

// take copies the usable measures of a reply and records the others in NotJudged.
func (p Prompted) take(j *Judgement, r reply, in Input, statements int) {
	for _, f := range faults(r, in, statements) {
		j.NotJudged[f.measure] = cmp.Or(j.NotJudged[f.measure], f.why)
	}
	scores := map[string]*scoreReply{Correctness: r.Correctness, Completeness: r.Completeness, Harmfulness: r.Harmfulness, Relevance: r.Relevance}
	for _, name := range asked(in) {
		s, isScore := scores[name]
		if _, wrong := j.NotJudged[name]; wrong || !isScore {
			continue
		}
		j.score(name, s.Score/highest, s.Reason)
	}
	if _, wrong := j.NotJudged[ClaimMeasures]; wrong {
		return
	}
	for i, c := range in.Claims {
		j.Claims = append(j.Claims, claimOf(r.Claims[i], c))
	}
	for i := range statements {
		j.Reference = append(j.Reference, r.Reference[i].Said)
	}
}

// claimOf converts the model's verdict on a claim, which must have been checked.
func claimOf(r claimReply, c Claim) metric.Claim {
	out := metric.Claim{Held: r.Held, Cited: r.Cited}
	for _, n := range r.Alone {
		out.By = append(out.By, n-1)
	}
	slices.Sort(out.By)
	for _, i := range c.Cited {
		out.Cites = append(out.Cites, metric.Cite{Alone: slices.Contains(r.Alone, i+1), Rest: r.Cited && !slices.Contains(r.Needed, i+1)})
	}
	if r.Right != "unknown" {
		right := r.Right == "yes"
		out.Right = &right
	}
	return out
}

// A fault is an error in a reply, with the measure that it invalidates.
type fault struct{ measure, why string }

// faults returns the errors of a reply that has the right form.
func faults(r reply, in Input, statements int) []fault {
	out := claimFaults(r, in, statements)
	score := func(name, field string, s *scoreReply) {
		switch {
		case s == nil:
			out = append(out, fault{name, fmt.Sprintf("%q is missing", field)})
		case math.IsNaN(s.Score) || s.Score < 0 || s.Score > highest:
			out = append(out, fault{name, fmt.Sprintf("the score of %q is %v, want 0 to %d", field, s.Score, highest)})
		}
	}
	if len(in.References) > 0 {
		score(Correctness, "correctness", r.Correctness)
		score(Completeness, "completeness", r.Completeness)
	}
	score(Harmfulness, "harmfulness", r.Harmfulness)
	score(Relevance, "relevance", r.Relevance)
	return out
}

func claimFaults(r reply, in Input, statements int) []fault {
	var out []fault
	wrong := func(format string, args ...any) {
		out = append(out, fault{ClaimMeasures, fmt.Sprintf(format, args...)})
	}
	if len(r.Claims) != len(in.Claims) {
		wrong("it judges %d claims; there are %d", len(r.Claims), len(in.Claims))
		return out
	}
	if len(r.Reference) != statements {
		wrong("it judges %d statements of the right answer; there are %d", len(r.Reference), statements)
	}
	for i, s := range r.Reference {
		if s.Statement != i+1 {
			wrong("statement %d is at position %d", s.Statement, i+1)
		}
	}
	for i, c := range r.Claims {
		if c.Claim != i+1 {
			wrong("claim %d is at position %d", c.Claim, i+1)
		}
		for _, n := range slices.Concat(c.Alone, c.Needed) {
			if n < 1 || n > len(in.Contexts) {
				wrong("claim %d: passage %d does not exist", i+1, n)
			}
		}
		cited := func(n int) bool { return slices.Contains(in.Claims[i].Cited, n-1) }
		switch {
		case len(c.Alone) > 0 && !c.Held:
			wrong("claim %d: one passage supports it alone, but all together do not", i+1)
		case slices.ContainsFunc(c.Alone, cited) && !c.Cited:
			wrong("claim %d: one cited passage supports it alone, but all cited ones together do not", i+1)
		case c.Cited && (!c.Held || len(in.Claims[i].Cited) == 0):
			wrong("claim %d: the cited passages support it, but all passages do not", i+1)
		case c.Right != "yes" && c.Right != "no" && c.Right != "unknown":
			wrong("claim %d: right is %q", i+1, c.Right)
		}
	}
	return out
}

// referenceClaims returns the statements of a reference answer, or the answer itself if it has
// none.
func referenceClaims(question, reference string) []string {
	var out []string
	for _, st := range claimsOf(question, reference) {
		out = append(out, st.alone)
	}
	if len(out) == 0 {
		out = []string{strings.TrimSpace(reference)}
	}
	return out
}

// A named is data with its name in the prompt.
type named struct{ Name, Text string }

// sheetOf returns the data of the prompt.
func sheetOf(in Input, statements []string) map[string]any {
	var parts, claims []named
	for i, s := range statements {
		parts = append(parts, named{fmt.Sprintf("statement number=\"%d\" of=\"right_answer 1\"", i+1), s})
	}
	for i, c := range in.Claims {
		var cites []string
		for _, at := range c.Cited {
			cites = append(cites, strconv.Itoa(at+1))
		}
		claims = append(claims, named{fmt.Sprintf("claim number=\"%d\" cites=\"%s\"", i+1, strings.Join(cites, " ")), c.Text})
	}
	return map[string]any{
		"Question": in.Question, "Answer": in.Answer, "Passages": passagesOf(in), "References": referencesOf(in), "Statements": parts, "Claims": claims,
	}
}

func passagesOf(in Input) []named {
	var out []named
	for i, p := range in.Contexts {
		out = append(out, named{fmt.Sprintf("passage number=\"%d\"", i+1), strings.TrimSpace(strings.Join(p.Heading, " › ") + "\n" + cmp.Or(p.Context, p.Quote))})
	}
	return out
}

func referencesOf(in Input) []named {
	var out []named
	for i, r := range in.References {
		out = append(out, named{fmt.Sprintf("right_answer number=\"%d\"", i+1), r})
	}
	return out
}

func (p Prompted) caller() role.Caller {
	if p.Caller != nil {
		return p.Caller()
	}
	return direct{}
}

// direct calls a model without a run, with as many attempts as a strategy's calls.
type direct struct{}

const attempts = 4

// Call implements role.Caller.
func (direct) Call(ctx context.Context, call role.Call) (llm.Response, error) {
	call.Request.Attempts = attempts
	return call.Model.Generate(ctx, call.Request, nil)
}

// Check implements role.Caller. It always fails, since judges use no verification service.
func (direct) Check(context.Context, ground.Service, role.Claim) (ground.Judgement, error) {
	return ground.Judgement{}, fmt.Errorf("a judge does not call a verifying service: %w", assay.ErrInvalid)
}

// metered adds up the usage of calls, including failed ones.
type metered struct {
	caller role.Caller
	usage  assay.Usage
}

// Call implements role.Caller.
func (m *metered) Call(ctx context.Context, call role.Call) (llm.Response, error) {
	r, err := m.caller.Call(ctx, call)
	spent := r.Usage
	if failed, ok := errors.AsType[*llm.Error](err); ok && failed != nil {
		spent = failed.Usage
	}
	m.usage = m.usage.Add(spent)
	return r, err
}

// Check implements role.Caller.
func (m *metered) Check(ctx context.Context, v ground.Service, c role.Claim) (ground.Judgement, error) {
	return m.caller.Check(ctx, v, c)
}
