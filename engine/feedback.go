package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// A FeedbackVerdict is a user's judgement of an answer.
type FeedbackVerdict string

// The verdicts of users.
const (
	FeedbackRight    FeedbackVerdict = "right"     // the outcome is right; of a question that is not answered too
	FeedbackWrong    FeedbackVerdict = "wrong"     // the outcome is wrong
	FeedbackNotAsked FeedbackVerdict = "not_asked" // the answer is about something else
)

// Bounds of the texts of feedback and labels, in bytes.
const (
	MaxFeedbackNote = 4 << 10
	MaxLabelAnswer  = 16 << 10
	MaxLabelQuote   = 16 << 10
	MaxLabels       = 20 // answers, and places
)

// A LabelPlace is a place in a document that a right answer rests on.
type LabelPlace struct {
	Document string `json:"document"`        // its URI
	Start    int    `json:"start,omitempty"` // byte offset in the document's text; with End 0: all of it
	End      int    `json:"end,omitempty"`
	Quote    string `json:"quote,omitempty"` // the text of the span
}

// NewFeedback is the part of a Feedback that its user sets.
type NewFeedback struct {
	Verdict FeedbackVerdict `json:"verdict"`
	Note    string          `json:"note,omitempty"`

	// Answer and Place correct an answer that is wrong. Document is the URI or the ID of a document that
	// the user sees. Start and End are found by the Quote, which must be in its text.
	Answer string      `json:"answer,omitempty"`
	Place  *LabelPlace `json:"place,omitempty"`
}

// A Feedback is a user's judgement about the answer of a run.
type Feedback struct {
	Run     string    `json:"run"`
	User    string    `json:"user"`
	Updated time.Time `json:"updated"`
	NewFeedback
}

// storedFeedback is the body of a store.Feedback.
type storedFeedback struct {
	Note      string      `json:"note,omitempty"`
	Answer    string      `json:"answer,omitempty"`
	Place     *LabelPlace `json:"place,omitempty"`
	Documents []string    `json:"documents,omitempty"` // IDs of the document of Place
}

// A RunRef names a run: the principal's own, or another's by the token of a share.
type RunRef struct {
	Run   string
	Share string
}

// judged returns the run of a reference if its answer is shown to the principal.
func (e *Engine) judged(ctx context.Context, principal assay.Principal, ref RunRef) (assay.Run, error) {
	if ref.Share != "" {
		r, _, _, err := e.shared(ctx, principal, ref.Share)
		return r, err
	}
	r, _, err := e.shownRun(ctx, principal, ref.Run)
	return r, err
}

// check validates the texts of feedback.
func (f NewFeedback) check() error {
	corrects := f.Answer != "" || f.Place != nil
	switch f.Verdict {
	case FeedbackWrong:
	case FeedbackRight, FeedbackNotAsked:
		if corrects {
			return fmt.Errorf("only feedback that an answer is wrong corrects it: %w", assay.ErrInvalid)
		}
	default:
		return fmt.Errorf("verdict %.20q: want right, wrong or not_asked: %w", f.Verdict, assay.ErrInvalid)
	}
	return errors.Join(checkText("note", f.Note, MaxFeedbackNote), checkText("right answer", f.Answer, MaxLabelAnswer))
}

// checkText rejects a text that is too long or not UTF-8.
func checkText(what, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) {
		return fmt.Errorf("the %s has %d bytes, want at most %d of UTF-8: %w", what, len(text), most, assay.ErrInvalid)
	}
	return nil
}

// locate completes a place in a document that the principal sees. The error is assay.ErrInvalid if there
// is no such document, or it does not have the quote.
func (e *Engine) locate(ctx context.Context, principal assay.Principal, p LabelPlace) (_ LabelPlace, document string, err error) {
	if err := errors.Join(checkText("name of the document", p.Document, MaxLabelQuote), checkText("quote", p.Quote, MaxLabelQuote)); err != nil {
		return p, "", err
	}
	d, err := e.FindDocument(ctx, principal, p.Document)
	if errors.Is(err, assay.ErrNotFound) {
		return p, "", fmt.Errorf("you see no document %.200q: %w", p.Document, assay.ErrInvalid)
	}
	if err != nil {
		return p, "", err
	}
	place := LabelPlace{Document: d.URI, Quote: strings.TrimSpace(p.Quote)}
	if place.Quote == "" {
		return place, d.ID, nil
	}
	place.Start = strings.Index(d.Text, place.Quote)
	if place.Start < 0 {
		return p, "", fmt.Errorf("the document does not have these words: %w", assay.ErrInvalid)
	}
	place.End = place.Start + len(place.Quote)
	return place, d.ID, nil
}

func (e *Engine) setFeedback(ctx context.Context, principal assay.Principal, ref RunRef, f NewFeedback) (Feedback, error) {
	f.Note, f.Answer = strings.TrimSpace(f.Note), strings.TrimSpace(f.Answer)
	if err := f.check(); err != nil {
		return Feedback{}, err
	}
	r, err := e.judged(ctx, principal, ref)
	if err != nil {
		return Feedback{}, err
	}
	kept := storedFeedback{Note: f.Note, Answer: f.Answer}
	if f.Place != nil {
		place, document, err := e.locate(ctx, principal, *f.Place)
		if err != nil {
			return Feedback{}, err
		}
		kept.Place, kept.Documents = &place, []string{document}
	}
	body, err := json.Marshal(kept)
	if err != nil {
		return Feedback{}, err
	}
	detail, err := json.Marshal(map[string]string{"verdict": string(f.Verdict)})
	if err != nil {
		return Feedback{}, err
	}
	stored := store.Feedback{Run: r.ID, User: principal.User, Verdict: string(f.Verdict), Body: body}
	act := store.Act{Kind: "feedback.set", Actor: principal, Detail: detail}
	if err := e.tenant.Feedbacks().Set(ctx, stored, act); err != nil {
		return Feedback{}, err
	}
	return e.ownFeedback(ctx, principal, r.ID)
}

// ownFeedback returns the principal's feedback on a run.
func (e *Engine) ownFeedback(ctx context.Context, principal assay.Principal, run string) (Feedback, error) {
	stored, err := e.tenant.Feedbacks().Feedback(ctx, run, principal.User)
	if err != nil {
		return Feedback{}, err
	}
	f, _, err := feedbackOf(stored)
	return f, err
}

// feedbackOf reads stored feedback and the documents that its texts may come from, besides those of the
// run.
func feedbackOf(s store.Feedback) (Feedback, []string, error) {
	var kept storedFeedback
	if err := json.Unmarshal(s.Body, &kept); err != nil {
		return Feedback{}, nil, fmt.Errorf("feedback on run %s: %w: %w", s.Run, assay.ErrDamaged, err)
	}
	f := Feedback{Run: s.Run, User: s.User, Updated: s.Updated}
	f.Verdict, f.Note, f.Answer, f.Place = FeedbackVerdict(s.Verdict), kept.Note, kept.Answer, kept.Place
	return f, kept.Documents, nil
}

// A FeedbackFilter selects feedback. Zero fields select all.
type FeedbackFilter struct {
	Verdict    FeedbackVerdict
	Unlabelled bool // only of runs from which no question was made
	After      FeedbackPlace
	Limit      int // at most so many; 0: DefaultFeedback
}

// DefaultFeedback is how many entries a list of feedback has, unless its filter says otherwise.
const DefaultFeedback = 50

// A FeedbackPlace is the place of feedback in a list, newest first.
type FeedbackPlace struct {
	Updated time.Time `json:"t"`
	Run     string    `json:"run"`
	User    string    `json:"user"`
}

// A FeedbackEntry is the feedback of any user. Its texts, and those of the run, are there only if the
// reader may see every document that they may come from.
type FeedbackEntry struct {
	Feedback
	Visible  bool         `json:"visible"`
	Question string       `json:"question,omitempty"`
	Status   assay.Status `json:"status,omitempty"`
	Text     string       `json:"text,omitempty"` // of the answer
	Sets     []string     `json:"sets"`           // question sets with a question from the run
}

func (e *Engine) feedbackList(ctx context.Context, principal assay.Principal, f FeedbackFilter) ([]FeedbackEntry, *FeedbackPlace, error) {
	limit := cmp.Or(f.Limit, DefaultFeedback)
	if limit < 0 {
		return nil, nil, fmt.Errorf("list at most %d: %w", limit, assay.ErrInvalid)
	}
	stored, err := e.tenant.Feedbacks().List(ctx, store.FeedbackFilter{
		Verdict: string(f.Verdict), Unlabelled: f.Unlabelled, After: store.FeedbackPlace(f.After), Limit: limit + 1,
	})
	if err != nil {
		return nil, nil, err
	}
	all := []FeedbackEntry{}
	for _, s := range stored {
		if len(all) == limit {
			last := all[limit-1]
			return all, &FeedbackPlace{last.Updated, last.Run, last.User}, nil
		}
		entry, err := e.feedbackEntry(ctx, principal, s)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, entry)
	}
	return all, nil, nil
}

// feedbackEntry returns feedback with the texts that principal may see.
func (e *Engine) feedbackEntry(ctx context.Context, principal assay.Principal, s store.Feedback) (FeedbackEntry, error) {
	f, r, _, err := e.labelled(ctx, principal, s)
	if errors.Is(err, assay.ErrForbidden) || errors.Is(err, assay.ErrNotFound) {
		hidden := Feedback{Run: s.Run, User: s.User, Updated: s.Updated}
		hidden.Verdict = FeedbackVerdict(s.Verdict)
		return FeedbackEntry{Feedback: hidden, Sets: list(s.Sets)}, nil
	}
	if err != nil {
		return FeedbackEntry{}, err
	}
	return FeedbackEntry{Feedback: f, Visible: true, Question: r.Question, Status: r.Answer.Status, Text: r.Answer.Text, Sets: list(s.Sets)}, nil
}

// labelled returns feedback with its run and the documents that the texts of both may come from. The
// error is assay.ErrForbidden unless principal may see all of them, and the answer is shown.
func (e *Engine) labelled(ctx context.Context, principal assay.Principal, s store.Feedback) (Feedback, assay.Run, []string, error) {
	fail := func(err error) (Feedback, assay.Run, []string, error) { return Feedback{}, assay.Run{}, nil, err }
	f, documents, err := feedbackOf(s)
	if err != nil {
		return fail(err)
	}
	r, err := e.runs.Run(ctx, s.Run)
	if err != nil {
		return fail(err)
	}
	records, err := e.runs.Records(ctx, s.Run)
	if err != nil {
		return fail(err)
	}
	read, err := documentsOf(r, records)
	if err != nil {
		return fail(err)
	}
	for _, id := range documents {
		read[id] = true
	}
	ids := slices.Sorted(maps.Keys(read))
	if err := e.checkDocuments(ctx, principal, ids); err != nil {
		return fail(err)
	}
	err = e.checkShown(ctx, r)
	if errors.Is(err, assay.ErrSuspended) || errors.Is(err, assay.ErrInvalid) {
		err = fmt.Errorf("the answer of run %s is not shown: %w", s.Run, assay.ErrForbidden)
	}
	return f, r, ids, err
}

// checkDocuments returns assay.ErrForbidden unless principal may see all of the documents now.
func (e *Engine) checkDocuments(ctx context.Context, principal assay.Principal, ids []string) error {
	for _, id := range ids {
		err := e.checkDocument(ctx, principal.Access(), id)
		if errors.Is(err, assay.ErrNotFound) {
			return fmt.Errorf("it rests on documents that you may not see: %w", assay.ErrForbidden)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SetFeedback stores the principal's judgement about an answer, which replaces an earlier one. The
// errors are those of Share for an own run and those of SharedRun for another's, and assay.ErrInvalid.
func (s *Session) SetFeedback(ctx context.Context, ref RunRef, f NewFeedback) (Feedback, error) {
	return call(ctx, s, "SetFeedback", func(c *sessionCall) (Feedback, error) { return c.engine.setFeedback(ctx, c.principal, ref, f) })
}

// Feedback returns the principal's judgement about an answer, or assay.ErrNotFound.
func (s *Session) Feedback(ctx context.Context, ref RunRef) (Feedback, error) {
	return call(ctx, s, "Feedback", func(c *sessionCall) (Feedback, error) {
		r, err := c.engine.judged(ctx, c.principal, ref)
		if err != nil {
			return Feedback{}, err
		}
		return c.engine.ownFeedback(ctx, c.principal, r.ID)
	})
}

// RemoveFeedback withdraws the principal's judgement about an answer, or returns assay.ErrNotFound.
func (s *Session) RemoveFeedback(ctx context.Context, ref RunRef) error {
	return do(ctx, s, "RemoveFeedback", func(c *sessionCall) error {
		r, err := c.engine.judged(ctx, c.principal, ref)
		if err != nil {
			return err
		}
		act := store.Act{Kind: "feedback.removed", Actor: c.principal}
		return c.engine.tenant.Feedbacks().Remove(ctx, r.ID, c.principal.User, act)
	})
}

// FeedbackList returns a part of the feedback of all users, the last changed first, and the place after
// which the next part begins; nil: there is no more.
func (s *Session) FeedbackList(ctx context.Context, f FeedbackFilter) (all []FeedbackEntry, next *FeedbackPlace, err error) {
	err = do(ctx, s, "FeedbackList", func(c *sessionCall) error {
		all, next, err = c.engine.feedbackList(ctx, c.principal, f)
		return err
	})
	return all, next, err
}
