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

// How much of a conversation a follow-up is understood from: its newest turns. Those
// before are left out, and the answer's notes say so.
const (
	MaxTurns        = 10
	MaxHistoryBytes = 32 << 10

	maxGivenTurns = 1000    // of Request.History
	maxGivenBytes = 1 << 20 // of Request.History
	maxTurnBytes  = 4 << 10 // of the answer of a turn; the rest is left out
	maxRested     = 10_000  // documents that a conversation may rest on
)

// A talk is the conversation before a question.
type talk struct {
	turns   []assay.Turn // the newest, the oldest of them first
	earlier int          // turns before those
	rests   []string     // documents that the answers in it were made from, by ID
}

// window keeps the newest turns that a follow-up is understood from.
func (t talk) window() talk {
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

// beginning cuts a text to at most n bytes and an ellipsis, which shows that it did.
func beginning(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + " …"
}

// conversation returns the conversation that a request goes on: the one that it brings
// along, or that of the run which it follows, read as the principal. A run that does
// not exist, is another's, or read what the principal may not see any more, is
// assay.ErrNotFound; one without an answer assay.ErrInvalid.
func (e *Engine) conversation(ctx context.Context, principal assay.Principal, req Request) (talk, error) {
	if req.Follows == "" {
		return talk{turns: slices.Clone(req.History)}.window(), nil
	}
	r, records, err := e.journal(ctx, principal, req.Follows)
	if err != nil {
		return talk{}, fmt.Errorf("the run to follow: %w", err)
	}
	if r.Answer == nil {
		return talk{}, fmt.Errorf("the run to follow: run %s has no answer (%s): %w", r.ID, r.State, assay.ErrInvalid)
	}
	before, err := requestOf(r)
	if err != nil {
		return talk{}, fmt.Errorf("the run to follow: %w", err)
	}
	read, err := documentsOf(r, records)
	if err != nil {
		return talk{}, fmt.Errorf("the run to follow: run %s: %w", r.ID, err)
	}
	t := talk{
		turns:   append(slices.Clone(before.History), turnOf(r)),
		earlier: before.EarlierTurns,
		rests:   slices.Sorted(maps.Keys(read)),
	}
	if len(t.rests) > maxRested {
		return talk{}, fmt.Errorf("the conversation rests on more than %d documents; begin a new one: %w", maxRested, assay.ErrInvalid)
	}
	return t.window(), nil
}

// turnOf is what a run adds to a conversation: its question, as it was understood, and
// what it said.
func turnOf(r assay.Run) assay.Turn {
	t := assay.Turn{Question: cmp.Or(r.Answer.Understood, r.Question), Answer: cmp.Or(r.Answer.AskBack, r.Answer.Text)}
	if t.Question != r.Question {
		t.Asked = r.Question
	}
	return t
}

// checkHistory refuses a conversation that is none, and one that is too long to be
// taken along.
func (r Request) checkHistory() error {
	if r.Follows != "" && len(r.History) > 0 {
		return fmt.Errorf("the request follows a run and brings a conversation along; give one of them: %w", assay.ErrInvalid)
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

// documentsOf returns the IDs of the documents that a run read: what its searches
// found and its tools read, what its answer cites, and what the conversation before it rests on.
func documentsOf(r assay.Run, records []assay.Record) (map[string]bool, error) {
	documents := map[string]bool{}
	if len(r.Request) > 0 {
		req, err := requestOf(r)
		if err != nil { // what it rests on cannot be told, so nobody may see it
			return nil, err
		}
		for _, id := range req.Rests {
			documents[id] = true
		}
	}
	for _, rec := range records {
		if rec.Error != nil {
			continue
		}
		if rec.Kind == assay.StepCache {
			given := read(rec).cached
			if given == nil {
				return nil, fmt.Errorf("what its step %s brought cannot be read: %w", rec.Path, assay.ErrDamaged)
			}
			for _, id := range given.Documents {
				documents[id] = true
			}
		}
		if isPage(rec) {
			p := pageOf(rec)
			if p == nil || p.Document == "" {
				return nil, fmt.Errorf("what its step %s read cannot be told: %w", rec.Path, assay.ErrDamaged)
			}
			documents[p.Document] = true
		}
		if rec.Kind != assay.StepSearch {
			continue
		}
		results := read(rec).results
		if results == nil { // what it found cannot be told, so nobody may see it
			return nil, fmt.Errorf("what its step %s found cannot be read: %w", rec.Path, assay.ErrDamaged)
		}
		for _, h := range results.Hits {
			if h.Origin == assay.FromDocuments {
				documents[h.Chunk.Document] = true
			}
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
