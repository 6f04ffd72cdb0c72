package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/store"
)

// maxReviewEvidence is the most passages that a reviewer is shown, unless the answer cites more.
const maxReviewEvidence = 40

// A heldDraft is the stored form of an answer that waits, or was decided.
type heldDraft struct {
	Format   int              `json:"format"`
	Answer   assay.Answer     `json:"answer"`           // as the strategy made it
	Edited   *assay.Answer    `json:"edited,omitempty"` // as a reviewer last edited it
	Evidence []assay.Evidence `json:"evidence"`         // numbers without a gap, as the answer cites them
}

// present returns the answer as it would be approved now.
func (h heldDraft) present() assay.Answer {
	if h.Edited != nil {
		return *h.Edited
	}
	return h.Answer
}

// parseDraft reads a stored draft. One of a newer program is assay.ErrNewer.
func parseDraft(data []byte) (heldDraft, error) {
	var h heldDraft
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("the answer that waits for a review: %v: %w", err, assay.ErrDamaged)
	}
	if h.Format > review.Format {
		return h, fmt.Errorf("the answer that waits for a review has format %d: %w", h.Format, assay.ErrNewer)
	}
	return h, nil
}

// reviewEvidence numbers the passages that a run found: those that the answer cites by their numbers
// there, and the others, most relevant first, by the numbers that are left.
func reviewEvidence(answer assay.Answer, records []assay.Record) []assay.Evidence {
	hits := foundHits(records)
	used := make([]bool, len(hits))
	cited := map[int]assay.Hit{}
	highest := 0
	for _, c := range answer.Citations {
		highest = max(highest, c.Number)
		if _, ok := cited[c.Number]; ok {
			continue
		}
		i := slices.IndexFunc(hits, func(h assay.Hit) bool {
			return h.Chunk.Document == c.Document && h.Chunk.Version == c.Version && h.Chunk.Start <= c.Start && c.End <= h.Chunk.End
		})
		if i >= 0 {
			used[i] = true
			cited[c.Number] = hits[i]
			continue
		}
		chunk := assay.Chunk{Document: c.Document, Version: c.Version, Start: c.Start, End: c.End, Headings: c.Heading}
		cited[c.Number] = assay.Hit{Chunk: chunk, Text: c.Quote, URI: c.URI, Title: c.Title, Origin: c.Origin}
	}
	var others []assay.Hit
	for i, h := range hits {
		if !used[i] {
			others = append(others, h)
		}
	}
	evidence := []assay.Evidence{}
	for n := 1; n <= highest || len(others) > 0 && n <= maxReviewEvidence; n++ {
		h, ok := cited[n]
		if !ok && len(others) > 0 {
			h, others = others[0], others[1:]
		}
		evidence = append(evidence, assay.Evidence{Number: n, Hit: h})
	}
	return evidence
}

// foundHits returns the passages that the searches of a run found, each once, most relevant first.
func foundHits(records []assay.Record) []assay.Hit {
	var hits []assay.Hit
	seen := map[string]bool{}
	for _, rec := range records {
		if rec.Kind != assay.StepSearch || rec.Error != nil {
			continue
		}
		results := read(rec).results
		if results == nil {
			continue
		}
		for _, h := range results.Hits {
			key := fmt.Sprintf("%s %s %d %d", h.Chunk.Document, h.Chunk.Version, h.Chunk.Start, h.Chunk.End)
			if !seen[key] {
				seen[key] = true
				hits = append(hits, h)
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b assay.Hit) int { return cmp.Compare(b.Scores.Relevance, a.Scores.Relevance) })
	return hits
}

// pinsOf returns the versions of documents that a review needs.
func pinsOf(evidence []assay.Evidence) []store.Pin {
	var pins []store.Pin
	for _, ev := range evidence {
		p := store.Pin{Document: ev.Hit.Chunk.Document, Version: ev.Hit.Chunk.Version}
		if p.Document != "" && ev.Hit.Origin == assay.FromDocuments && !slices.Contains(pins, p) {
			pins = append(pins, p)
		}
	}
	return pins
}

// pendingAnswer is what is shown of an answer while it waits. It holds nothing of its content.
func pendingAnswer(answer assay.Answer, c review.Case) assay.Answer {
	shown := withoutContent(answer)
	shown.Status, shown.Reason = assay.PendingReview, assay.ReasonReview
	shown.Text = "The answer waits for a person's review."
	shown.Justification = "a person decides about the answer before it is shown"
	shown.Oversight = &assay.Oversight{Decision: assay.DecisionPending, Deadline: c.Deadline}
	return shown
}

// rejectedAnswer is what is shown of an answer that was rejected.
func rejectedAnswer(answer assay.Answer, r review.Ruling) assay.Answer {
	shown := withoutContent(answer)
	shown.Status, shown.Reason = assay.Rejected, assay.ReasonReviewer
	shown.Text = "A reviewer rejected the answer: " + r.Reason
	shown.Justification = "a reviewer rejected the answer"
	if r.Kind == assay.DecisionExpired {
		shown.Reason, shown.Text = assay.ReasonExpired, "The answer is not shown: "+r.Reason+"."
		shown.Justification = r.Reason
	}
	shown.Oversight = &assay.Oversight{Decision: r.Kind, By: r.Reviewers, At: r.At, Reason: r.Reason}
	return shown
}

// withoutContent returns the fields of an answer that tell nothing about its content.
func withoutContent(a assay.Answer) assay.Answer {
	return withLists(assay.Answer{
		Question: a.Question, Strategy: a.Strategy, Run: a.Run, Usage: a.Usage, ElapsedMS: a.ElapsedMS, Index: a.Index,
	})
}

// These texts take the place of a step's result that may not be shown.
const (
	withheldText       = "not shown: the answer is subject to review"
	withheldCanaryText = "not shown: the answer was withheld"
)

// withheldStep returns a step without what it read and wrote. why is one of the texts above.
func withheldStep(s Step, why string) Step {
	s.Summary, s.Input, s.Output = why, nil, nil
	if s.Error != nil {
		s.Error = &assay.RecordedError{Kind: s.Error.Kind, Message: why}
	}
	return s
}

// withheldEvent returns an event of a step with the course of the run and nothing of its content.
func withheldEvent(ev Event, why string) Event {
	shown := Event{Kind: ev.Kind, Run: ev.Run}
	if ev.Step != nil {
		s := withheldStep(*ev.Step, why)
		if ev.Kind == StepStarted {
			s.Summary = string(s.Kind)
		}
		shown.Step = &s
	}
	return shown
}

// withholding returns an emit that passes the course of a run and nothing of its content.
func withholding(emit func(Event)) func(Event) {
	if emit == nil {
		return nil
	}
	return func(ev Event) {
		if ev.Kind != Draft {
			emit(withheldEvent(ev, withheldText))
		}
	}
}

// withoutDivergence returns err without the details of a divergence, because they quote the steps.
func withoutDivergence(err error) error {
	if !errors.Is(err, assay.ErrDiverged) {
		return err
	}
	return fmt.Errorf("%w; details are %s", assay.ErrDiverged, withheldText)
}

// withheld returns the text to show in place of the steps of a run, if its owner must not see them: its
// answer waits, was not released as the strategy made it, or may still have to wait. Otherwise it
// returns "".
func (e *Engine) withheld(ctx context.Context, r assay.Run) (string, error) {
	switch {
	case r.State == assay.RunSuspended:
		return withheldText, nil
	case r.State == assay.RunDone && r.Answer != nil:
		return withheldAfter(*r.Answer), nil
	case r.State == assay.RunDone, r.State == assay.RunErased: // nothing is left to withhold
		return "", nil
	}
	req, err := requestOf(r)
	if err != nil {
		return withheldText, err
	}
	if req.Strategy != describeStrategy && (req.Guarded || e.reviewPossible(ctx, r, req.Request)) {
		return withheldText, nil
	}
	return "", nil
}

// withheldAfter is withheld for a run with an answer.
func withheldAfter(a assay.Answer) string {
	switch o := a.Oversight; {
	case a.Reason == assay.ReasonWithheld:
		return withheldCanaryText
	case o != nil && o.Decision != assay.DecisionApproved:
		return withheldText
	}
	return ""
}

// checkReleased returns an error if the journal of a run must not be used for another run.
func (e *Engine) checkReleased(ctx context.Context, r assay.Run) error {
	withheld, err := e.withheld(ctx, r)
	switch {
	case err != nil:
		return err
	case r.State == assay.RunSuspended:
		return fmt.Errorf("run %s waits for a review: %w", r.ID, assay.ErrSuspended)
	case withheld == withheldCanaryText:
		return fmt.Errorf("run %s: its answer was withheld, and so are its steps: %w", r.ID, assay.ErrForbidden)
	case withheld != "":
		return fmt.Errorf("run %s: its steps are not released, because its answer is subject to review: %w", r.ID, assay.ErrForbidden)
	}
	return nil
}

// hashOf returns the SHA-256 of a text in hexadecimal.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// timeOrNil returns nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
