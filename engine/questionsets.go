package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// DefaultQuestionSet is the set that questions from feedback enter unless another one is named.
const DefaultQuestionSet = "feedback"

// A LabelledQuestion is a line of a set of questions, as docs/formats.md describes it.
type LabelledQuestion struct {
	ID           string       `json:"id"` // of the run from which it was made
	Question     string       `json:"question"`
	History      []assay.Turn `json:"conversation,omitempty"`
	Filter       assay.Filter `json:"filter,omitzero"`
	Collections  []string     `json:"collections,omitempty"`
	Answers      []string     `json:"answers,omitempty"`
	Gold         []LabelPlace `json:"gold,omitempty"`
	Unanswerable bool         `json:"unanswerable,omitempty"`
	Conflicting  *bool        `json:"conflicting,omitempty"` // nil: unknown
}

// Labels state the right outcome of a question: reference answers, places or that there is no answer. At
// least one is set.
type Labels struct {
	Answers      []string     `json:"answers,omitempty"` // any of them is right
	Places       []LabelPlace `json:"places,omitempty"`  // any of them; the quotes find Start and End
	Unanswerable bool         `json:"unanswerable,omitempty"`
}

// A StoredQuestion is a question of a set.
type StoredQuestion struct {
	LabelledQuestion
	Updated time.Time `json:"updated"`
}

// A QuestionSetSummary is a set in a list.
type QuestionSetSummary struct {
	Name      string    `json:"name"`
	Questions int       `json:"questions"` // with those that the reader does not see
	Updated   time.Time `json:"updated"`
}

// A QuestionSet is a named set of questions.
type QuestionSet struct {
	Name      string           `json:"name"`
	Questions []StoredQuestion `json:"questions"` // in the order in which they were added
	Hidden    int              `json:"hidden"`    // questions from documents that the reader may not see
}

// Lines returns the questions as lines of a set, for an evaluation or a file.
func (s QuestionSet) Lines() ([]json.RawMessage, error) {
	lines := make([]json.RawMessage, len(s.Questions))
	for i, q := range s.Questions {
		line, err := json.Marshal(q.LabelledQuestion)
		if err != nil {
			return nil, err
		}
		lines[i] = line
	}
	return lines, nil
}

// questionFrom returns the question of a run without labels.
func questionFrom(r assay.Run) (LabelledQuestion, error) {
	req, err := questionOf(r)
	return LabelledQuestion{ID: r.ID, Question: r.Question, History: req.History, Filter: req.Filter, Collections: req.Collections}, err
}

// label sets the labels that feedback gives, and reports whether it gives any: a right answer is
// labelled by its claims and citations, and a right refusal by itself.
func (q *LabelledQuestion) label(a assay.Answer, f NewFeedback) bool {
	switch {
	case f.Verdict == FeedbackRight && a.Status == assay.NotFound:
		q.Unanswerable = true
		return true
	case f.Verdict == FeedbackRight:
		if said := saidIn(a); said != "" {
			q.Answers = []string{said}
		}
		q.Gold = citedPlaces(a)
		conflict := a.Status == assay.Conflicting
		q.Conflicting = &conflict
		return len(q.Answers)+len(q.Gold) > 0
	case f.Verdict == FeedbackWrong:
		if f.Answer != "" {
			q.Answers = []string{f.Answer}
		}
		if f.Place != nil {
			q.Gold = []LabelPlace{*f.Place}
		}
		return len(q.Answers)+len(q.Gold) > 0
	}
	return false
}

// saidIn returns the claims of an answer, which have no citation numbers.
func saidIn(a assay.Answer) string {
	var said []string
	for _, c := range a.Claims {
		if 0 <= c.Start && c.Start < c.End && c.End <= len(a.Text) {
			said = append(said, a.Text[c.Start:c.End])
		}
	}
	return strings.Join(said, " ")
}

// citedPlaces returns the places that an answer cites, each once.
func citedPlaces(a assay.Answer) []LabelPlace {
	var places []LabelPlace
	for _, c := range a.Citations {
		p := LabelPlace{Document: c.URI, Start: c.Start, End: c.End, Quote: c.Quote}
		if !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	return places
}

// ErrNoLabel is the error of LabelFeedback if the feedback does not tell the right outcome.
var ErrNoLabel = errors.New("the feedback does not tell the right outcome; give an answer, a place, or that there is none")

func (e *Engine) labelFeedback(ctx context.Context, principal assay.Principal, run, user, set string, labels *Labels) (StoredQuestion, error) {
	if err := checkSetName(set); err != nil {
		return StoredQuestion{}, err
	}
	stored, err := e.tenant.Feedbacks().Feedback(ctx, run, user)
	if err != nil {
		return StoredQuestion{}, err
	}
	f, r, documents, err := e.labelled(ctx, principal, stored)
	if err != nil {
		return StoredQuestion{}, fmt.Errorf("label run %s: %w", run, err)
	}
	q, err := questionFrom(r)
	if err != nil {
		return StoredQuestion{}, err
	}
	if labels == nil && !q.label(*r.Answer, f.NewFeedback) {
		return StoredQuestion{}, fmt.Errorf("label run %s: %w: %w", run, ErrNoLabel, assay.ErrInvalid)
	}
	if labels != nil {
		if documents, err = e.relabel(ctx, principal, &q, *labels, documents); err != nil {
			return StoredQuestion{}, err
		}
	}
	return e.storeQuestion(ctx, principal, set, q, documents, "question.added", e.tenant.Questions().Add)
}

// storeQuestion stores a question by put, with an act.
func (e *Engine) storeQuestion(
	ctx context.Context, principal assay.Principal, set string, q LabelledQuestion, documents []string, kind string,
	put func(context.Context, store.Question, store.Act) error,
) (StoredQuestion, error) {
	line, err := json.Marshal(q)
	if err != nil {
		return StoredQuestion{}, err
	}
	act, err := questionAct(kind, set, principal)
	if err != nil {
		return StoredQuestion{}, err
	}
	err = put(ctx, store.Question{Set: set, Run: q.ID, Line: line, Documents: documents}, act)
	return StoredQuestion{q, e.config.Now().UTC()}, err
}

func questionAct(kind, set string, principal assay.Principal) (store.Act, error) {
	detail, err := json.Marshal(map[string]string{"set": set})
	return store.Act{Kind: kind, Actor: principal, Detail: detail}, err
}

// checkSetName rejects a name that no set can have.
func checkSetName(set string) error {
	if strings.TrimSpace(set) == "" {
		return fmt.Errorf("the set has no name: %w", assay.ErrInvalid)
	}
	return checkName("set", set)
}

// relabel replaces the labels of a question. documents are those that its texts may come from, without
// the new labels; it returns them with the new ones. Places that the question has stay as they are;
// others must be in documents that principal sees.
func (e *Engine) relabel(ctx context.Context, principal assay.Principal, q *LabelledQuestion, l Labels, documents []string) ([]string, error) {
	labelled := l.Unanswerable || len(l.Answers)+len(l.Places) > 0
	switch {
	case !labelled:
		return nil, fmt.Errorf("%w: %w", ErrNoLabel, assay.ErrInvalid)
	case l.Unanswerable && len(l.Answers)+len(l.Places) > 0:
		return nil, fmt.Errorf("a question without an answer has neither an answer nor a place: %w", assay.ErrInvalid)
	case len(l.Answers) > MaxLabels || len(l.Places) > MaxLabels:
		return nil, fmt.Errorf("the question has %d answers and %d places, want at most %d: %w", len(l.Answers), len(l.Places), MaxLabels, assay.ErrInvalid)
	}
	for _, a := range l.Answers {
		if err := checkText("right answer", a, MaxLabelAnswer); err != nil {
			return nil, err
		}
		if strings.TrimSpace(a) == "" {
			return nil, fmt.Errorf("an answer is empty: %w", assay.ErrInvalid)
		}
	}
	documents = slices.Clone(documents)
	var places []LabelPlace
	for _, p := range l.Places {
		if slices.Contains(q.Gold, p) {
			places = append(places, p)
			continue
		}
		place, id, err := e.locate(ctx, principal, p)
		if err != nil {
			return nil, err
		}
		places, documents = append(places, place), append(documents, id)
	}
	if l.Unanswerable {
		q.Conflicting = nil
	}
	q.Answers, q.Gold, q.Unanswerable = l.Answers, places, l.Unanswerable
	slices.Sort(documents)
	return slices.Compact(documents), nil
}

// questionSet returns a set with the questions whose documents principal sees, and those documents.
func (e *Engine) questionSet(ctx context.Context, principal assay.Principal, name string) (QuestionSet, map[string][]string, error) {
	stored, err := e.tenant.Questions().Set(ctx, name)
	if err != nil {
		return QuestionSet{}, nil, err
	}
	set, documents := QuestionSet{Name: name, Questions: []StoredQuestion{}}, map[string][]string{}
	seen := map[string]error{} // by document, because questions of a set share them
	for _, s := range stored {
		err := e.checkOnce(ctx, principal, s.Documents, seen)
		if errors.Is(err, assay.ErrForbidden) {
			set.Hidden++
			continue
		}
		q := StoredQuestion{Updated: s.Updated}
		if err == nil {
			err = json.Unmarshal(s.Line, &q.LabelledQuestion)
		}
		if err != nil {
			return QuestionSet{}, nil, fmt.Errorf("question of run %s: %w", s.Run, err)
		}
		set.Questions = append(set.Questions, q)
		documents[q.ID] = s.Documents
	}
	return set, documents, nil
}

// checkOnce is checkDocuments, which checks each document once for all calls with the same map.
func (e *Engine) checkOnce(ctx context.Context, principal assay.Principal, ids []string, seen map[string]error) error {
	for _, id := range ids {
		if _, checked := seen[id]; !checked {
			seen[id] = e.checkDocuments(ctx, principal, []string{id})
		}
		if seen[id] != nil {
			return seen[id]
		}
	}
	return nil
}

// questionIn returns a question of a set that principal sees, with its documents, or
// assay.ErrNotFound.
func (e *Engine) questionIn(ctx context.Context, principal assay.Principal, name, run string) (LabelledQuestion, []string, error) {
	set, documents, err := e.questionSet(ctx, principal, name)
	if err != nil {
		return LabelledQuestion{}, nil, err
	}
	i := slices.IndexFunc(set.Questions, func(q StoredQuestion) bool { return q.ID == run })
	if i < 0 {
		return LabelledQuestion{}, nil, fmt.Errorf("question of run %.64q in the set %.64q: %w", run, name, assay.ErrNotFound)
	}
	return set.Questions[i].LabelledQuestion, documents[run], nil
}

// LabelFeedback makes a labelled question of a user's feedback and adds it to a set. Without labels, it
// has those that the feedback gives: a right answer those of the run, a right refusal that there is
// none, and a wrong answer its correction. Otherwise the error is ErrNoLabel. The error is
// assay.ErrForbidden unless the principal may see every document that the run read, and
// assay.ErrInvalid if the set has a question from the run.
func (s *Session) LabelFeedback(ctx context.Context, run, user, set string, labels *Labels) (StoredQuestion, error) {
	return call(ctx, s, "LabelFeedback", func(c *sessionCall) (StoredQuestion, error) {
		return c.engine.labelFeedback(ctx, c.principal, run, user, set, labels)
	})
}

// QuestionSets returns the question sets by name.
func (s *Session) QuestionSets(ctx context.Context) ([]QuestionSetSummary, error) {
	return call(ctx, s, "QuestionSets", func(c *sessionCall) ([]QuestionSetSummary, error) {
		stored, err := c.engine.tenant.Questions().Sets(ctx)
		all := make([]QuestionSetSummary, len(stored))
		for i, set := range stored {
			all[i] = QuestionSetSummary(set)
		}
		return all, err
	})
}

// QuestionSet returns a set with the questions from documents that the principal may see, or
// assay.ErrNotFound.
func (s *Session) QuestionSet(ctx context.Context, name string) (QuestionSet, error) {
	return call(ctx, s, "QuestionSet", func(c *sessionCall) (QuestionSet, error) {
		set, _, err := c.engine.questionSet(ctx, c.principal, name)
		return set, err
	})
}

// SetLabels replaces the labels of a question of a set. The error is assay.ErrNotFound if the principal
// does not see the question.
func (s *Session) SetLabels(ctx context.Context, set, run string, labels Labels) (StoredQuestion, error) {
	return call(ctx, s, "SetLabels", func(c *sessionCall) (StoredQuestion, error) {
		e := c.engine
		q, documents, err := e.questionIn(ctx, c.principal, set, run)
		if err == nil {
			documents, err = e.relabel(ctx, c.principal, &q, labels, documents)
		}
		if err != nil {
			return StoredQuestion{}, err
		}
		return e.storeQuestion(ctx, c.principal, set, q, documents, "question.changed", e.tenant.Questions().Change)
	})
}

// RemoveQuestion removes a question from a set. The error is assay.ErrNotFound if the principal does not
// see the question.
func (s *Session) RemoveQuestion(ctx context.Context, set, run string) error {
	return do(ctx, s, "RemoveQuestion", func(c *sessionCall) error {
		if _, _, err := c.engine.questionIn(ctx, c.principal, set, run); err != nil {
			return err
		}
		act, err := questionAct("question.removed", set, c.principal)
		if err != nil {
			return err
		}
		return c.engine.tenant.Questions().Remove(ctx, set, run, act)
	})
}
