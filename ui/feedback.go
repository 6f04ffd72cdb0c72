package ui

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// feedbackRoutes are about the judgements of users.
func feedbackRoutes() []Route {
	return []Route{
		action("/runs/{id}/feedback", "run.feedback", "SetFeedback", judgeRun),
		action("/runs/{id}/feedback/withdraw", "run.feedback.withdraw", "RemoveFeedback", withdrawRun),
		action("/shared/{token}/feedback", "shared.feedback", "SetFeedback", judgeShared),
		action("/shared/{token}/feedback/withdraw", "shared.feedback.withdraw", "RemoveFeedback", withdrawShared),
	}
}

// feedbackWords are how pages show the verdicts of users.
var feedbackWords = map[engine.FeedbackVerdict]statusWords{
	engine.FeedbackRight:    {"good", "check", "Right", "You said that this is right."},
	engine.FeedbackWrong:    {"bad", "cross", "Wrong", "You said that this is wrong."},
	engine.FeedbackNotAsked: {"warn", "question", "Not what I asked", "You said that this is not what you asked."},
}

// A verdictChoice is a button by which a user judges.
type verdictChoice struct {
	Value engine.FeedbackVerdict
	statusWords
	Chosen bool
}

// Choices returns the buttons.
func (a actions) Choices() []verdictChoice {
	var all []verdictChoice
	for _, v := range []engine.FeedbackVerdict{engine.FeedbackRight, engine.FeedbackWrong, engine.FeedbackNotAsked} {
		all = append(all, verdictChoice{v, feedbackWords[v], a.Feedback != nil && a.Feedback.Verdict == v})
	}
	return all
}

// Said returns the sentence about the user's own verdict.
func (a actions) Said() string { return feedbackWords[a.Feedback.Verdict].Says }

// judged is how one kind of page judges: by the ID of a run, or by the token of a link.
type judged struct {
	ref     engine.RunRef
	page    string // of the answer
	actions func() (actions, error)
}

func judgeRun(q *request) error       { return q.judge(q.ownRun()) }
func withdrawRun(q *request) error    { return q.withdraw(q.ownRun()) }
func judgeShared(q *request) error    { return q.judge(q.sharedRun()) }
func withdrawShared(q *request) error { return q.withdraw(q.sharedRun()) }

func (q *request) ownRun() judged {
	id := q.path("id")
	return judged{engine.RunRef{Run: id}, runPath(id), func() (actions, error) { return q.actions(id) }}
}

func (q *request) sharedRun() judged {
	token := q.path("token")
	return judged{engine.RunRef{Share: token}, "/shared/" + url.PathEscape(token), func() (actions, error) { return q.sharedActions(token) }}
}

// judge stores a judgement. A form that has no more than a verdict keeps the note of an earlier one.
func (q *request) judge(j judged) error {
	f, err := q.feedbackForm()
	if err != nil {
		return err
	}
	a, err := j.actions()
	if err != nil {
		return err
	}
	if !q.r.PostForm.Has("note") && a.Feedback != nil {
		f.Note = a.Feedback.Note
		if f.Verdict == engine.FeedbackWrong {
			f.Answer, f.Place = a.Feedback.Answer, a.Feedback.Place
		}
	}
	if _, err := q.session.SetFeedback(q.ctx(), j.ref, f); errors.Is(err, assay.ErrInvalid) && a.Judgeable {
		a.Input, a.Open, a.Problem = f, "details", problem{feedbackField(f, err), plainError(err)}
		return q.renderActions(http.StatusBadRequest, a)
	} else if err != nil {
		return err
	}
	return q.judgedNow(j, "Thank you. "+feedbackWords[f.Verdict].Says, !q.r.PostForm.Has("note") && f.Verdict != engine.FeedbackRight)
}

// feedbackForm reads the form of a judgement.
func (q *request) feedbackForm() (engine.NewFeedback, error) {
	verdict, err := q.form("verdict")
	if err != nil {
		return engine.NewFeedback{}, err
	}
	field := func(name string) string { return strings.TrimSpace(q.r.PostForm.Get(name)) }
	f := engine.NewFeedback{Verdict: engine.FeedbackVerdict(verdict), Note: field("note")}
	if f.Verdict == engine.FeedbackWrong {
		f.Answer = field("answer")
		if document := field("document"); document != "" || field("quote") != "" {
			f.Place = &engine.LabelPlace{Document: document, Quote: field("quote")}
		}
	}
	return f, nil
}

// feedbackField returns the field that an error is about.
func feedbackField(f engine.NewFeedback, err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "these words"), strings.Contains(text, "quote"):
		return "quote"
	case f.Place != nil && strings.Contains(text, "document"):
		return "document"
	case strings.Contains(text, "note"):
		return "note"
	case strings.Contains(text, "right answer"):
		return "answer"
	}
	return ""
}

// plainError returns the text of an error without its kind, as a sentence.
func plainError(err error) string {
	text := withoutKind(err.Error())
	first, n := utf8.DecodeRuneInString(text)
	if n == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[n:] + "."
}

func (q *request) withdraw(j judged) error {
	err := q.session.RemoveFeedback(q.ctx(), j.ref)
	if err != nil && !errors.Is(err, assay.ErrNotFound) { // it was withdrawn in another window
		return err
	}
	return q.judgedNow(j, "Your feedback is withdrawn.", false)
}

// judgedNow shows the answer again after a judgement, or its part. details opens the form for a note.
func (q *request) judgedNow(j judged, done string, details bool) error {
	if !q.isPart() {
		return q.redirect(j.page+"#feedback", done)
	}
	a, err := j.actions()
	if err != nil {
		return err
	}
	a.Done = done
	if details {
		a.Open = "details"
	}
	return q.renderActions(http.StatusOK, a)
}
