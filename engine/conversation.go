package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// Limits of the conversation that a follow-up question is interpreted with. It consists of the
// newest turns; the answer's Notes report how many were left out.
const (
	MaxTurns        = 10
	MaxHistoryBytes = 32 << 10

	maxGivenTurns     = 1000    // of Request.History
	maxGivenBytes     = 1 << 20 // of Request.History
	maxTurnBytes      = 4 << 10 // bytes kept of a turn's answer
	maxPriorDocuments = 10_000  // documents that a conversation may depend on
)

// priorTurns is the conversation that precedes a question.
type priorTurns struct {
	turns     []assay.Turn // the newest turns, in chronological order
	earlier   int          // number of turns before those
	documents []string     // IDs of the documents that its answers were made from
}

// window keeps the newest turns, within MaxTurns and MaxHistoryBytes.
func (t priorTurns) window() priorTurns {
	size, from := 0, len(t.turns)
	for from > 0 && len(t.turns)-from < MaxTurns {
		turn := &t.turns[from-1]
		turn.Answer = beginning(turn.Answer, maxTurnBytes)
		if size += len(turn.Question) + len(turn.Answer) + len(turn.Asked); size > MaxHistoryBytes {
			break
		}
		from--
	}
	t.turns, t.earlier = t.turns[from:], t.earlier+from
	return t
}

// beginning truncates text to at most n bytes and appends an ellipsis if it was longer.
func beginning(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + " …"
}

// conversation returns the conversation before a request: its History, or the conversation of the
// run that it follows, read with the principal's access. It returns assay.ErrNotFound if that run
// does not exist, belongs to another principal, or read a document that the principal may no
// longer see. It returns assay.ErrInvalid if the run has no answer.
func (e *Engine) conversation(ctx context.Context, principal assay.Principal, req Request) (priorTurns, error) {
	if req.Follows == "" {
		return priorTurns{turns: slices.Clone(req.History)}.window(), nil
	}
	r, records, err := e.journal(ctx, principal, req.Follows)
	if err != nil {
		return priorTurns{}, fmt.Errorf("the run to follow: %w", err)
	}
	if r.State == assay.RunSuspended {
		return priorTurns{}, fmt.Errorf("the run to follow: run %s waits for a review: %w", r.ID, assay.ErrSuspended)
	}
	if r.Answer != nil && r.Answer.Reason == assay.ReasonWithheld {
		return priorTurns{}, fmt.Errorf("the run to follow: the answer of run %s was withheld: %w", r.ID, assay.ErrInvalid)
	}
	if r.Answer != nil && r.Answer.Status == assay.Rejected {
		return priorTurns{}, fmt.Errorf("the run to follow: the answer of run %s was rejected in a review: %w", r.ID, assay.ErrInvalid)
	}
	before, err := questionOf(r)
	if err != nil {
		return priorTurns{}, fmt.Errorf("the run to follow: %w", err)
	}
	if r.Answer == nil {
		return priorTurns{}, fmt.Errorf("the run to follow: run %s has no answer (%s): %w", r.ID, r.State, assay.ErrInvalid)
	}
	read, err := documentsOf(r, records)
	if err != nil {
		return priorTurns{}, fmt.Errorf("the run to follow: run %s: %w", r.ID, err)
	}
	t := priorTurns{
		turns:     append(slices.Clone(before.History), turnOf(r)),
		earlier:   before.EarlierTurns,
		documents: slices.Sorted(maps.Keys(read)),
	}
	if len(t.documents) > maxPriorDocuments {
		return priorTurns{}, fmt.Errorf("the conversation depends on more than %d documents; begin a new one: %w", maxPriorDocuments, assay.ErrInvalid)
	}
	return t.window(), nil
}

// turnOf returns the turn that a run adds to a conversation: the question as it was understood,
// and the answer.
func turnOf(r assay.Run) assay.Turn {
	t := assay.Turn{Question: cmp.Or(r.Answer.Understood, r.Question), Answer: cmp.Or(r.Answer.AskBack, r.Answer.Text)}
	if t.Question != r.Question {
		t.Asked = r.Question
	}
	return t
}

// checkHistory rejects a malformed or oversized conversation.
func (r Request) checkHistory() error {
	if r.Follows != "" && len(r.History) > 0 {
		return fmt.Errorf("the request has both a run to follow and a history; give one of them: %w", assay.ErrInvalid)
	}
	size := 0
	for i, t := range r.History {
		if strings.TrimSpace(t.Question) == "" {
			return fmt.Errorf("turn %d of the conversation has no question: %w", i+1, assay.ErrInvalid)
		}
		if !utf8.ValidString(t.Question + t.Answer + t.Asked) {
			return fmt.Errorf("turn %d of the conversation is not valid UTF-8: %w", i+1, assay.ErrInvalid)
		}
		if max(len(t.Question), len(t.Asked)) > MaxQuestionBytes {
			return fmt.Errorf("the question of turn %d of the conversation is longer than %d bytes: %w", i+1, MaxQuestionBytes, assay.ErrInvalid)
		}
		size += len(t.Question) + len(t.Answer) + len(t.Asked)
	}
	if len(r.History) > maxGivenTurns || size > maxGivenBytes {
		return fmt.Errorf("the conversation has %d turns and %d bytes, at most %d and %d are taken; send the newest turns, the last %d of which count: %w",
			len(r.History), size, maxGivenTurns, maxGivenBytes, MaxTurns, assay.ErrInvalid)
	}
	return nil
}

// documentsOf returns the IDs of the documents that a run depends on: those that its searches and
// tools read, that its answer cites, and that the preceding conversation depends on.
func documentsOf(r assay.Run, records []assay.Record) (map[string]bool, error) {
	documents := map[string]bool{}
	if r.State == assay.RunErased { // it has no text
		return documents, nil
	}
	if len(r.Request) > 0 {
		req, err := requestOf(r)
		if err != nil { // the documents are unknown, so access must be denied
			return nil, err
		}
		for _, id := range req.Rests {
			documents[id] = true
		}
	}
	for _, rec := range records {
		if err := addDocuments(documents, rec, read(rec)); err != nil {
			return nil, err
		}
	}
	if r.Answer != nil {
		for _, c := range r.Answer.Citations {
			if c.Origin == assay.FromDocuments {
				documents[c.Document] = true
			}
		}
	}
	return documents, nil
}

// addDocuments adds the IDs of the documents that a step read. If they cannot be told, the error is
// assay.ErrDamaged, and access must be denied.
func addDocuments(documents map[string]bool, rec assay.Record, p payload) error {
	if rec.Error != nil {
		return nil
	}
	if rec.Kind == assay.StepCache {
		if p.cached == nil {
			return fmt.Errorf("the output of step %s cannot be read: %w", rec.Path, assay.ErrDamaged)
		}
		for _, id := range p.cached.Documents {
			documents[id] = true
		}
	}
	if isPage(rec) {
		page := pageOf(rec)
		if page == nil || page.Document == "" {
			return fmt.Errorf("the document that step %s read is not recorded: %w", rec.Path, assay.ErrDamaged)
		}
		documents[page.Document] = true
	}
	if rec.Kind != assay.StepSearch {
		return nil
	}
	if p.results == nil {
		return fmt.Errorf("the results of step %s cannot be read: %w", rec.Path, assay.ErrDamaged)
	}
	for _, h := range p.results.Hits {
		if h.Origin == assay.FromDocuments {
			documents[h.Chunk.Document] = true
		}
	}
	return nil
}
