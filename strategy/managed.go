package strategy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// Managed is a service that answers questions by itself, from passages of its own. It is
// safe for concurrent use.
type Managed interface {
	// Name says who is asked: "bedrock/knowledge-base/ABCDEFGHIJ".
	Name() string

	// Most is what one question may spend at most, as far as that is known.
	Most(question string) assay.Usage

	// Ask has the service answer from what access may see and the filter keeps. An
	// access that sees nothing of it is assay.ErrNotFound, a filter that it cannot keep
	// to assay.ErrInvalid, a service that failed assay.ErrUnavailable. Usage is what was
	// spent, also with an error.
	Ask(ctx context.Context, access assay.Access, q ManagedQuestion) (ManagedAnswer, assay.Usage, error)
}

// ManagedQuestion is what a service is asked.
type ManagedQuestion struct {
	Text        string       `json:"text"`
	Collections []string     `json:"collections,omitempty"` // of which its own has to be one; empty: any
	Filter      assay.Filter `json:"filter"`
	Limit       int          `json:"limit"` // passages to answer from
}

// ManagedAnswer is what a service has said. Nobody has verified it.
type ManagedAnswer struct {
	Text  string        `json:"text"`
	Parts []ManagedPart `json:"parts"` // of the text, for which it gives sources; in its order
	Notes []string      `json:"notes,omitempty"`
}

// A ManagedPart is the bytes [Start, End) of a service's text, and what it rests on.
type ManagedPart struct {
	Start int         `json:"start"`
	End   int         `json:"end"`
	Hits  []assay.Hit `json:"hits"`
}

// managedInput is what asking a service records.
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

// AskManaged hands the question to a managed service and verifies its answer: each statement is
// checked against the passages that the service gives for it, and is not shown if it is not
// supported or has no source. The passages are graded like any others. The citation numbers are
// assay's own.
func AskManaged(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	if env.Managed == nil {
		return Result{}, fmt.Errorf("no managed service is configured: %w", assay.ErrInvalid)
	}
	f := finding{question: env.Question, stop: assay.StopIterationLimit}
	f.grade.Missing = []string{asked(env.Question).line(env.Question)}
	written, err := f.delegate(ctx, s, env)
	if err == nil && len(f.hits) > 0 {
		env.Limits.Floor, env.Limits.Held = 0, 0 // a service gives no relevance to go by
		err = f.regrade(ctx, s, env)
	}
	if stop := stopOf(err); stop != "" {
		f.ends(stop, err)
		err = nil
	}
	if err != nil {
		return Result{}, err
	}
	if f.sufficient() {
		f.stop = assay.StopSufficient
	}
	env.Roles.Generator = written
	env = env.withoutWriter()
	env.Roles.Models = maps.Clone(env.Roles.Models)
	delete(env.Roles.Models, role.GeneratorRole)
	env.Limits.Keep = max(env.Limits.Keep, len(f.hits)) // all that the service cites
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), "managed", []finding{f})
	if written.failed != "" && err == nil { // which is not the same as not having found
		answer.verdicts.draft, answer.details.service, answer.details.failure = draftNoService, env.Managed.Name(), written.failed
		answer.settle()
	}
	return answer, err
}

// delegate asks the service. What it cites becomes the finding's hits, and what it says
// what the finding's answer is written from. A service that failed has said nothing, and
// the notes say why.
func (f *finding) delegate(ctx context.Context, s run.Scope, env Env) (delegated, error) {
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
		return delegated{}, err
	case isFailure(err):
		said := strings.TrimPrefix(failureOf(err), env.Managed.Name()+": ")
		f.notes.say(assay.NoteElsewhere, remark(env.Managed.Name()+": "+said))
		if errors.Is(err, assay.ErrNotFound) {
			said = "" // there is nothing for whoever asks
		}
		return delegated{failed: said}, nil
	case err != nil:
		return delegated{}, err
	}
	f.iterations++
	for _, note := range said.Notes {
		f.notes.say(assay.NoteElsewhere, remark(note))
	}
	answer := delegatedOf(said)
	if answer.uncited > 0 {
		f.notes.say(assay.NoteLeftOut, fmt.Sprintf("left out: %s of the service for which it gives no source", count(answer.uncited, "statement", "statements")))
	}
	f.merge(answer.hits)
	f.terms = termsOf(env.Question, f.hits)
	f.searched = append(f.searched, assay.Searched{
		Query: env.Question, Origin: assay.FromService, Collections: env.Collections, Filter: env.Filter, Hits: len(f.hits), Grade: assay.Insufficient,
	})
	f.tries = append(f.tries, tryOf(env.Question, env.Filter))
	return answer, nil
}

// termsOf returns the terms of a question with what is known of them: of the hits alone.
func termsOf(question string, hits []assay.Hit) []assay.Term {
	var terms []assay.Term
	for _, t := range analysis.QueryTerms(question, nil) {
		terms = append(terms, assay.Term{Text: t.Text, Stem: t.Forms[0], Forms: t.Forms[1:], Weight: 1})
	}
	return known(terms, hits)
}

// delegated is what a service has written, as statements. It is a generator that writes
// these, and no others.
type delegated struct {
	said    ManagedAnswer
	hits    []assay.Hit // that it cites, each once
	uncited int         // pieces of its text without a source
	failed  string      // why it has said nothing; empty: it has, or has nothing for whoever asks
}

// delegatedOf reads a service's answer. Parts that do not lie in its text, or overlap an
// earlier one, count for nothing.
func delegatedOf(said ManagedAnswer) delegated {
	d := delegated{said: ManagedAnswer{Text: said.Text}}
	known := map[string]bool{}
	end := 0
	for _, p := range said.Parts {
		if p.Start < end || p.End <= p.Start || p.End > len(said.Text) {
			d.uncited++
			continue
		}
		if strings.ContainsFunc(said.Text[end:p.Start], isWordRune) {
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
		d.said.Parts = append(d.said.Parts, part)
	}
	if strings.ContainsFunc(said.Text[min(end, len(said.Text)):], isWordRune) {
		d.uncited++
	}
	return d
}

func isWordRune(r rune) bool { return r > ' ' && !strings.ContainsRune(".,;:!?*#-–—|>()[]\"'`", r) }

// Generate implements role.Generator. Evidence has the numbers that were minted for what
// the service cites; what was not accepted has none, and cannot be cited.
func (d delegated) Generate(_ context.Context, _ role.Caller, in role.GenerateInput) (role.Draft, error) {
	draft := role.Draft{Statements: []role.Statement{}}
	for _, p := range d.said.Parts {
		st := role.Statement{Text: strings.TrimSpace(strings.ToValidUTF8(d.said.Text[p.Start:p.End], "\uFFFD")), Evidence: []int{}}
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
		draft.Open = []string{"what the service says without a source"}
	}
	return draft, nil
}

// mostOfReply is how many tokens a service's answer is taken to have, where nothing is
// said of it: an answer is paid for, and nobody says in advance how long it gets.
const mostOfReply = 2048

// MostOfManaged returns what one question to a service may spend at most that says
// nothing of it itself: a call, the question's tokens, and those of a long answer.
func MostOfManaged(question string, maxTokens int) assay.Usage {
	if maxTokens < 1 {
		maxTokens = mostOfReply
	}
	return assay.Usage{Calls: 1, InputTokens: llm.EstimateTokens(question), OutputTokens: maxTokens}
}
