package ui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/server"
)

// A timelineStep is a step of a run on its page.
type timelineStep struct {
	ID      string // of its element, the same when it starts and when it has ended
	Ordinal int    // in the journal; -1: it has not ended
	Icon    string
	Class   string // of its icon: good, warn, bad or empty
	Title   string
	Text    string   // of the question, a document or a model
	Facts   string   // counts
	List    []string // of sub-questions, gaps or reasons
	Elapsed time.Duration
	Error   string
}

// Running reports whether the step has not ended.
func (s timelineStep) Running() bool { return s.Ordinal < 0 }

// stepTitles are the kinds of step that the timeline shows, with their icons and titles while they run
// and when they have ended. The trace shows all.
var stepTitles = map[assay.StepKind]struct{ icon, running, ended string }{
	assay.StepPlan:     {"plan", "Planning", "Plan"},
	assay.StepSearch:   {"search", "Searching", "Searched"},
	assay.StepWeb:      {"search", "Searching the web", "Web"},
	assay.StepTool:     {"search", "Using a tool", "Tool"},
	assay.StepGrade:    {"scale", "Grading what was found", "Graded"},
	assay.StepGenerate: {"write", "Writing", "Wrote a draft"},
	assay.StepVerify:   {"shield", "Checking each claim", "Checked"},
	assay.StepRung:     {"right", "Trying another way", "Another way"},
	assay.StepHuman:    {"person", "Waiting for a person", "Review"},
}

// timelineStepOf returns the step of an event; nil: the timeline does not show it. Drafts of a model are
// not verified and never shown.
func timelineStepOf(ev engine.Event) *timelineStep {
	if ev.Step == nil {
		return nil
	}
	title, shown := stepTitles[ev.Step.Kind]
	if !shown {
		return nil
	}
	s := &timelineStep{ID: stepID(ev.Step.Path), Ordinal: ev.Step.Ordinal, Icon: title.icon, Title: title.ended, Elapsed: ev.Step.Elapsed}
	if ev.Kind == engine.StepStarted {
		s.Ordinal, s.Title = -1, title.running
		if ev.Query != nil {
			s.Text = ev.Query.Text
		}
		return s
	}
	if ev.Step.Error != nil {
		s.Class, s.Error = "bad", ev.Step.Error.Message
		return s
	}
	s.results(ev)
	return s
}

// stepID returns the ID of the element of a step.
func stepID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return "step-" + hex.EncodeToString(sum[:6])
}

// maxList is the most entries of a list in the timeline.
const maxList = 8

// results fills in what a step that has ended found.
func (s *timelineStep) results(ev engine.Event) {
	switch {
	case ev.Plan != nil:
		if s.Facts = "one question"; len(ev.Plan.SubQuestions) > 1 {
			s.Facts = fmt.Sprintf("%s of %d questions", ev.Plan.Shape, len(ev.Plan.SubQuestions))
			for _, sub := range ev.Plan.SubQuestions {
				s.List = append(s.List, sub.Text)
			}
		}
	case ev.Results != nil && ev.Query != nil:
		s.Text, s.Facts = ev.Query.Text, foundFacts(len(ev.Results.Hits), bestOf(ev.Results.Hits))
	case ev.Grade != nil:
		s.Class, s.Facts = gradeClass(ev.Grade.Verdict), fmt.Sprintf("%s, %s", ev.Grade.Verdict, count(len(ev.Grade.Relevant), "relevant passage"))
		if ev.Grade.Verdict != assay.Sufficient {
			s.List = missingOf(ev.Grade.Missing)
		}
	case ev.Verdicts != nil:
		s.verdicts(ev)
	default:
		s.Text = ev.Step.Summary
	}
	if len(s.List) > maxList {
		more := count(len(s.List)-maxList, "other")
		s.List = append(s.List[:maxList:maxList], "and "+more)
	}
}

// verdicts fills in how many claims are supported, and why others are not.
func (s *timelineStep) verdicts(ev engine.Event) {
	supported := 0
	for i, v := range ev.Verdicts {
		if v.Verdict == assay.Supported {
			supported++
			continue
		}
		s.List = append(s.List, fmt.Sprintf("Claim %d is %s: %s", i+1, v.Verdict, v.Reason))
	}
	s.Facts = fmt.Sprintf("%d of %s supported", supported, count(len(ev.Verdicts), "claim"))
	if s.Class = "good"; supported < len(ev.Verdicts) {
		s.Class = "warn"
	}
}

func missingOf(parts []string) []string {
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = "Missing: " + p
	}
	return list
}

// foundFacts says how much a search found.
func foundFacts(hits int, best float64) string {
	if hits == 0 {
		return "no passage"
	}
	return fmt.Sprintf("%s, best relevance %.2f", count(hits, "passage"), best)
}

func bestOf(hits []assay.Hit) (best float64) {
	for _, h := range hits {
		best = max(best, h.Scores.Relevance)
	}
	return best
}

// gradeClass returns the class of a grade.
func gradeClass(v assay.GradeVerdict) string {
	return map[assay.GradeVerdict]string{assay.Sufficient: "good", assay.Partly: "warn"}[v]
}

// A timeline is the steps of a run so far.
type timeline struct {
	Steps []timelineStep
	Last  int // ordinal of the last step in the journal; -1: there is none
	Fold  string
}

// timelineOf returns the timeline of a run.
func timelineOf(r assay.Run, steps []engine.Step) timeline {
	t := timeline{Last: len(steps) - 1}
	checked := 0
	for _, s := range steps {
		ev := s.Event(r.ID)
		checked += len(ev.Verdicts)
		if shown := timelineStepOf(ev); shown != nil {
			t.Steps = append(t.Steps, *shown)
		}
	}
	if r.Answer != nil {
		t.Fold = foldOf(*r.Answer, checked)
	}
	return t
}

// foldOf returns the one line of a timeline: "3 searches, 2 rounds, 5 claims checked, 1.2 s".
func foldOf(a assay.Answer, checked int) string {
	var parts []string
	if n := max(len(a.Searched), a.Usage.Searches); n > 0 {
		parts = append(parts, count(n, "search"))
	}
	if a.Iterations > 1 {
		parts = append(parts, count(a.Iterations, "round"))
	}
	if checked = max(checked, len(a.Claims)); checked > 0 {
		parts = append(parts, count(checked, "claim")+" checked")
	}
	return strings.Join(append(parts, duration(time.Duration(a.ElapsedMS)*time.Millisecond)), ", ")
}

// A liveMessage is the data of a message to the page of an active run.
type liveMessage struct {
	ID      string `json:"id,omitempty"` // of the element that HTML replaces, or that is inserted by Ordinal
	Ordinal int    `json:"ordinal"`      // -1: the step has not ended
	HTML    string `json:"html,omitempty"`
	Say     string `json:"say,omitempty"`  // for screen readers
	Done    bool   `json:"done,omitempty"` // the answer is there
}

// followRun sends the steps of a run to its page. A page that has received the answer gets no content,
// so that its EventSource does not connect again.
func followRun(q *request) error {
	id := q.path("id")
	after, ended, err := server.LastEvent(q.r)
	if err != nil {
		return err
	}
	if ended {
		if _, _, err := q.session.Run(q.ctx(), id); err != nil {
			return err
		}
		q.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if text := q.query("after"); after < 0 && text != "" {
		if after, err = strconv.Atoi(text); err != nil || after < -1 {
			return fmt.Errorf("%q is not the ordinal of a step: %w", text, assay.ErrInvalid)
		}
	}
	return q.pages.config.Server.Stream(q.w, q.r, func(ctx context.Context) iter.Seq2[server.Message, error] {
		return server.RunMessages(q.session.Follow(ctx, id, after), q.liveMessageOf)
	})
}

// liveMessageOf returns the message for an event; nil: the page does not need it.
func (q *request) liveMessageOf(ev engine.Event) (any, error) {
	if ev.Kind == engine.RunEnded {
		return liveMessage{Done: true, Ordinal: -1}, nil
	}
	s := timelineStepOf(ev)
	if s == nil {
		return nil, nil
	}
	text, err := q.text("run.html", "step", *s)
	if err != nil {
		return nil, err
	}
	m := liveMessage{ID: s.ID, Ordinal: s.Ordinal, HTML: string(text)}
	if spoken := []assay.StepKind{assay.StepSearch, assay.StepGenerate, assay.StepVerify}; s.Running() && slices.Contains(spoken, ev.Step.Kind) {
		m.Say = s.Title
	}
	return m, nil
}
