package strategy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// Managed is a service that answers questions from its own passages. It is safe for concurrent use.
type Managed interface {
	// Name returns the name of the service, such as "bedrock/knowledge-base/ABCDEFGHIJ".
	Name() string

	// Most returns the maximum usage of one question, as far as it is known.
	Most(question string) assay.Usage

	// Ask answers a question from passages that access may read and the filter keeps. It returns
	// assay.ErrNotFound if access may read nothing, assay.ErrInvalid if the service cannot apply
	// the filter, and assay.ErrUnavailable if the service failed. Usage is valid even with an
	// error.
	Ask(ctx context.Context, access assay.Access, q ManagedQuestion) (ManagedAnswer, assay.Usage, error)
}

// ManagedQuestion is a question to a managed service.
type ManagedQuestion struct {
	Text        string       `json:"text"`
	Collections []string     `json:"collections,omitempty"` // the service's own must be one of them; empty: any
	Filter      assay.Filter `json:"filter"`
	Limit       int          `json:"limit"` // passages to answer from
}

// ManagedAnswer is the unverified answer of a managed service.
type ManagedAnswer struct {
	Text  string        `json:"text"`
	Parts []ManagedPart `json:"parts"` // parts of the text with sources, in order
	Notes []string      `json:"notes,omitempty"`
}

// A ManagedPart is the bytes [Start, End) of the answer's text, with its sources.
type ManagedPart struct {
	Start int         `json:"start"`
	End   int         `json:"end"`
	Hits  []assay.Hit `json:"hits"`
}

// managedInput is the recorded input of the step that asks the service.
type managedInput struct {
	Question ManagedQuestion `json:"question"`
	Access   assay.Access    `json:"access"`
}

// managedSpec describes AskManaged.
var managedSpec = Spec{
	Name:      "managed",
	Summary:   "asks a managed service, and verifies its answer like any other",
	Source:    "AWS, Amazon Bedrock API Reference, RetrieveAndGenerate (with query decomposition) and InvokeAgent",
	Func:      AskManaged,
	Defaults:  "those of the service (managed.passages, managed.max_tokens)",
	UsualCost: "the call to the service more than static, and no search",
}

// AskManaged asks a managed service and verifies its answer. Each statement is checked against the
// passages that the service cites for it, and is not shown if it is unsupported or has no source.
// The passages are graded like any others. The citation numbers are assay's own.
func AskManaged(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	if env.Managed == nil {
		return Result{}, fmt.Errorf("no managed service is configured: %w", assay.ErrInvalid)
	}
	sq := subQuestion{question: env.Question, stop: assay.StopIterationLimit}
	sq.grade.Missing = []string{questionSources(env.Question).line(env.Question)}
	written, err := sq.askManaged(ctx, s, env)
	if err == nil && len(sq.hits) > 0 {
		env.Limits.Floor, env.Limits.MinAnswerability = 0, 0 // the service gives no relevance
		err = sq.gradeAll(ctx, s, env)
	}
	if stop := stopOf(err); stop != "" {
		sq.endSearch(stop, err)
		err = nil
	}
	if err != nil {
		return Result{}, err
	}
	if sq.sufficient() {
		sq.stop = assay.StopSufficient
	}
	env.Roles.Generator = written
	env = env.withoutWriter()
	env.Limits.Keep = max(env.Limits.Keep, len(sq.hits)) // keep all cited hits
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), "managed", []subQuestion{sq})
	if written.failed != "" && err == nil { // a failed service is not the same as not found
		answer.verdicts.draft, answer.details.service, answer.details.failure = draftNoService, env.Managed.Name(), written.failed
		answer.updateStatus()
	}
	return answer, err
}

// askManaged asks the service. Its cited passages become the sub-question's hits, and its text
// becomes the generator's draft. If the service fails, the draft is empty and the notes have the
// reason.
func (sq *subQuestion) askManaged(ctx context.Context, s run.Scope, env Env) (managedDraft, error) {
	in := managedInput{
		Question: ManagedQuestion{Text: env.Question, Collections: env.Collections, Filter: env.Filter, Limit: env.Limits.Candidates},
		Access:   env.Access,
	}
	step := run.Step{Name: "managed", Kind: assay.StepModel, Model: env.Managed.Name(), Reserve: env.Managed.Most(env.Question)}
	said, err := run.Do(ctx, s.Until(env.Limits.Wall*3/4), step, in, func(ctx context.Context, in managedInput) (ManagedAnswer, assay.Usage, error) {
		out, usage, err := env.Managed.Ask(ctx, env.Access, in.Question)
		return out, usage, err
	})
	switch {
	case stopOf(err) != "":
		return managedDraft{}, err
	case isFailure(err):
		said := strings.TrimPrefix(failureOf(err), env.Managed.Name()+": ")
		sq.notes.say(assay.NoteElsewhere, remarkLine(env.Managed.Name()+": "+said))
		if errors.Is(err, assay.ErrNotFound) {
			said = "" // the caller may read nothing of it
		}
		return managedDraft{failed: said}, nil
	case err != nil:
		return managedDraft{}, err
	}
	sq.iterations++
	for _, note := range said.Notes {
		sq.notes.say(assay.NoteElsewhere, remarkLine(note))
	}
	answer := splitManagedAnswer(said)
	if answer.uncited > 0 {
		sq.notes.say(assay.NoteLeftOut, fmt.Sprintf("left out: %s of the service for which it gives no source", count(answer.uncited, "statement", "statements")))
	}
	sq.addHits(answer.hits)
	sq.terms = termsOf(env.Question, sq.hits)
	sq.searched = append(sq.searched, assay.Searched{
		Query: env.Question, Origin: assay.FromService, Collections: env.Collections, Filter: env.Filter, Hits: len(sq.hits), Grade: assay.Insufficient,
	})
	sq.searchKeys = append(sq.searchKeys, searchKeyOf(env.Question, env.Filter))
	return answer, nil
}

// termsOf returns the terms of a question, with their counts in the hits alone.
func termsOf(question string, hits []assay.Hit) []assay.Term {
	var terms []assay.Term
	for _, t := range analysis.QueryTerms(question, nil) {
		terms = append(terms, assay.Term{Text: t.Text, Stem: t.Forms[0], Forms: t.Forms[1:], Weight: 1})
	}
	return known(terms, hits)
}

// managedDraft is a managed answer, split into statements. It is a generator that returns these
// statements.
type managedDraft struct {
	answer  ManagedAnswer
	hits    []assay.Hit // distinct cited passages
	uncited int         // pieces of its text without a source
	failed  string      // why the service failed; empty: it answered, or the caller may read nothing of it
}

// splitManagedAnswer splits a service's answer into statements. It ignores parts that are outside
// its text or overlap an earlier one.
func splitManagedAnswer(answer ManagedAnswer) managedDraft {
	d := managedDraft{answer: ManagedAnswer{Text: answer.Text}}
	known := map[string]bool{}
	end := 0
	for _, p := range answer.Parts {
		if p.Start < end || p.End <= p.Start || p.End > len(answer.Text) {
			d.uncited++
			continue
		}
		if strings.ContainsFunc(answer.Text[end:p.Start], isWordRune) {
			d.uncited++
		}
		end = p.End
		part := ManagedPart{Start: p.Start, End: p.End}
		for _, h := range p.Hits {
			if h.Text == "" {
				continue
			}
			h.Origin = assay.FromService
			part.Hits = append(part.Hits, h)
			if !known[h.Chunk.ID] {
				known[h.Chunk.ID] = true
				d.hits = append(d.hits, h)
			}
		}
		if len(part.Hits) == 0 {
			d.uncited++
			continue
		}
		d.answer.Parts = append(d.answer.Parts, part)
	}
	if strings.ContainsFunc(answer.Text[min(end, len(answer.Text)):], isWordRune) {
		d.uncited++
	}
	return d
}

func isWordRune(r rune) bool { return r > ' ' && !strings.ContainsRune(".,;:!?*#-–—|>()[]\"'`", r) }

// Generate implements role.Generator. Evidence has the citation numbers of the accepted passages;
// the others have no number and cannot be cited.
func (d managedDraft) Generate(_ context.Context, _ role.Caller, in role.GenerateInput) (role.Draft, error) {
	draft := role.Draft{Statements: []role.Statement{}}
	for _, p := range d.answer.Parts {
		st := role.Statement{Text: strings.TrimSpace(strings.ToValidUTF8(d.answer.Text[p.Start:p.End], "\uFFFD")), Evidence: []int{}}
		for _, h := range p.Hits {
			for _, ev := range in.Evidence {
				same := ev.Hit.Chunk.ID == h.Chunk.ID || ev.Hit.Text == h.Text
				if same && !slices.Contains(st.Evidence, ev.Number) {
					st.Evidence = append(st.Evidence, ev.Number)
				}
			}
		}
		draft.Statements = append(draft.Statements, st)
	}
	if d.uncited > 0 {
		draft.Open = []string{"statements of the service without a source"}
	}
	return draft, nil
}

// mostOfReply is the assumed length in tokens of a service's answer if no limit is set, since its
// length is not known in advance but is charged.
const mostOfReply = 2048

// MostOfManaged returns the assumed maximum usage of one question to a service that reports none:
// one call, the question's tokens, and those of a long answer.
func MostOfManaged(question string, maxTokens int) assay.Usage {
	if maxTokens < 1 {
		maxTokens = mostOfReply
	}
	return assay.Usage{Calls: 1, InputTokens: llm.EstimateTokens(question), OutputTokens: maxTokens}
}
