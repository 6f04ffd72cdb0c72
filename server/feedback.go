package server

import (
	"bytes"
	"context"

	"github.com/assay-rag/assay/engine"
)

// feedbackRoutes are about the judgements of users.
func feedbackRoutes() []Route {
	return []Route{
		route("PUT", "/api/v1/runs/{id}/feedback", "runs.judge", "SetFeedback", "Say whether an answer is right",
			func(ctx context.Context, s *engine.Session, in judgeIn) (engine.Feedback, error) {
				return s.SetFeedback(ctx, engine.RunRef{Run: in.ID}, in.Body)
			}),
		route("GET", "/api/v1/runs/{id}/feedback", "runs.feedback", "Feedback", "Show the caller's judgement of an answer",
			func(ctx context.Context, s *engine.Session, in runIn) (engine.Feedback, error) {
				return s.Feedback(ctx, engine.RunRef{Run: in.ID})
			}),
		route("DELETE", "/api/v1/runs/{id}/feedback", "runs.unjudge", "RemoveFeedback", "Withdraw the caller's judgement of an answer",
			func(ctx context.Context, s *engine.Session, in runIn) (none, error) {
				return none{}, s.RemoveFeedback(ctx, engine.RunRef{Run: in.ID})
			}),
		route("PUT", "/api/v1/shared/{token}/feedback", "shared.judge", "SetFeedback", "Say whether an answer that a link opens is right",
			func(ctx context.Context, s *engine.Session, in judgeSharedIn) (engine.Feedback, error) {
				return s.SetFeedback(ctx, sharedRef(in.Token), in.Body)
			}),
		route("GET", "/api/v1/shared/{token}/feedback", "shared.feedback", "Feedback", "Show the caller's judgement of an answer that a link opens",
			func(ctx context.Context, s *engine.Session, in sharedIn) (engine.Feedback, error) {
				return s.Feedback(ctx, sharedRef(in.Token))
			}),
		route("DELETE", "/api/v1/shared/{token}/feedback", "shared.unjudge", "RemoveFeedback", "Withdraw the caller's judgement of an answer that a link opens",
			func(ctx context.Context, s *engine.Session, in sharedIn) (none, error) {
				return none{}, s.RemoveFeedback(ctx, sharedRef(in.Token))
			}),
		returning[FeedbackPage](raw("GET", "/api/v1/feedback", "feedback.list", "FeedbackList", "List the judgements of all users, the last changed first", listFeedback)),
		route("POST", "/api/v1/feedback/{run}/label", "feedback.label", "LabelFeedback", "Make a labelled question of a judgement",
			func(ctx context.Context, s *engine.Session, in labelIn) (engine.StoredQuestion, error) {
				return s.LabelFeedback(ctx, in.Run, in.User, in.Set, in.Body)
			}),
		route("GET", "/api/v1/questions", "questions.sets", "QuestionSets", "List sets of labelled questions",
			func(ctx context.Context, s *engine.Session, _ none) (questionSets, error) {
				all, err := s.QuestionSets(ctx)
				return questionSets{all}, err
			}),
		route("GET", "/api/v1/questions/{set}", "questions.show", "QuestionSet", "Show a set of labelled questions, those that the caller may see",
			func(ctx context.Context, s *engine.Session, in questionSetIn) (engine.QuestionSet, error) {
				return s.QuestionSet(ctx, in.Set)
			}),
		raw("GET", "/api/v1/questions/{set}/export", "questions.export", "QuestionSet", "Download a set of labelled questions, one a line, for assay eval", exportQuestions).with(func(r *Route) {
			r.Media = []string{typeLines}
		}),
		route("PUT", "/api/v1/questions/{set}/{run}", "questions.label", "SetLabels", "Replace the labels of a question",
			func(ctx context.Context, s *engine.Session, in setLabelsIn) (engine.StoredQuestion, error) {
				return s.SetLabels(ctx, in.Set, in.Run, in.Body)
			}),
		route("DELETE", "/api/v1/questions/{set}/{run}", "questions.remove", "RemoveQuestion", "Remove a question from a set",
			func(ctx context.Context, s *engine.Session, in questionIn) (none, error) {
				return none{}, s.RemoveQuestion(ctx, in.Set, in.Run)
			}),
	}
}

// typeLines is the media type of one JSON value a line.
const typeLines = "application/jsonl"

// sharedRef names a run by the token of a link.
func sharedRef(token string) engine.RunRef { return engine.RunRef{Share: token} }

type judgeIn struct {
	ID   string             `path:"id"`
	Body engine.NewFeedback `body:"application/json"`
}

type judgeSharedIn struct {
	Token string             `path:"token"`
	Body  engine.NewFeedback `body:"application/json"`
}

type listFeedbackIn struct {
	Verdict    string `query:"verdict"`    // right, wrong, not_asked
	Unlabelled bool   `query:"unlabelled"` // only of runs from which no question was made
	Cursor     string `query:"cursor"`
	Limit      int    `query:"limit"` // 1 to 500; default 50
}

// A FeedbackPage is a part of a list of feedback.
type FeedbackPage struct {
	Feedback []engine.FeedbackEntry `json:"feedback"`
	Next     string                 `json:"next,omitempty"` // cursor of the next part; empty: there is none
}

func listFeedback(x *exchange, in listFeedbackIn) (err error) {
	f := engine.FeedbackFilter{Verdict: engine.FeedbackVerdict(in.Verdict), Unlabelled: in.Unlabelled}
	if f.Limit, err = pageSize(in.Limit); err != nil {
		return err
	}
	if err := x.place(in.Cursor, &f.After); err != nil {
		return err
	}
	all, next, err := x.session.FeedbackList(x.r.Context(), f)
	if err != nil {
		return err
	}
	page := FeedbackPage{Feedback: all}
	if next != nil {
		if page.Next, err = x.cursor(next); err != nil {
			return err
		}
	}
	x.linkNext(page.Next)
	return x.reply(page)
}

type labelIn struct {
	Run  string         `path:"run"`
	User string         `query:"user"` // whose judgement it is
	Set  string         `query:"set"`
	Body *engine.Labels `body:"application/json" optional:"true"` // none: those that the judgement gives
}

type questionSets struct {
	Sets []engine.QuestionSetSummary `json:"sets"`
}

type questionSetIn struct {
	Set string `path:"set"`
}

type questionIn struct {
	Set string `path:"set"`
	Run string `path:"run"`
}

type setLabelsIn struct {
	Set  string        `path:"set"`
	Run  string        `path:"run"`
	Body engine.Labels `body:"application/json"`
}

// exportQuestions writes a set with one question a line.
func exportQuestions(x *exchange, in questionSetIn) error {
	set, err := x.session.QuestionSet(x.r.Context(), in.Set)
	if err != nil {
		return err
	}
	lines, err := set.Lines()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, line := range lines {
		b.Write(line)
		b.WriteByte('\n')
	}
	x.attach("questions.jsonl")
	return x.write(typeLines, b.Bytes())
}
