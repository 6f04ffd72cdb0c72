package ui

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/job"
)

// labelRoutes make labelled questions of feedback.
func labelRoutes() []Route {
	return []Route{
		page("/labels", "labels", "FeedbackList", showLabels),
		action("/labels", "labels.add", "LabelFeedback", addQuestion),
		page("/labels/{set}", "labels.set", "QuestionSet", showSet),
		page("/labels/{set}/export", "labels.export", "QuestionSet", exportSet),
		action("/labels/{set}/evaluate", "labels.evaluate", "StartEvaluation", evaluateSet),
		action("/labels/{set}/{run}", "labels.change", "SetLabels", changeLabels),
		action("/labels/{set}/{run}/remove", "labels.remove", "RemoveQuestion", removeQuestion),
	}
}

// A labelsPage is the data of the list of feedback.
type labelsPage struct {
	Entries    []labelEntry
	Verdict    string // the filter
	Unlabelled bool
	Filters    []labelFilter
	Next       string // URL of the next part; empty: there is none
	First      bool   // it is the first part
	Sets       []setRow
	Set        string // that new questions enter
}

// A labelFilter is a verdict by which the list can be filtered.
type labelFilter struct {
	Value  engine.FeedbackVerdict
	Word   string
	Chosen bool
}

// A setRow is a question set in a list.
type setRow struct {
	engine.QuestionSetSummary
	Path string
}

// A labelEntry is feedback in the list.
type labelEntry struct {
	engine.FeedbackEntry
	Words    statusWords
	Sets     []setLink
	OneClick string // the statement that one click stores as its label; empty: the label is missing
	Form     labelForm
}

// A setLink leads to a set.
type setLink struct{ Name, Path string }

// A labelForm is the form for the labels of a question.
type labelForm struct {
	ID           string // of its fields
	Run, User    string
	Set          string
	Answers      string // one a line
	Document     string
	Quote        string
	Unanswerable bool
	Places       []labelPlace // that the question has
	Open         bool
	Problem      string
	Back         string // query of the list to which it leads
}

// A labelPlace is a place that a question has, with the form in which it is sent.
type labelPlace struct {
	engine.LabelPlace
	Value string
	Kept  bool
}

func setPath(name string) string { return "/labels/" + url.PathEscape(name) }

func showLabels(q *request) error { return q.renderLabels(http.StatusOK, labelForm{}) }

// renderLabels shows the list. failed is a form with its problem.
func (q *request) renderLabels(status int, failed labelForm) error {
	p := labelsPage{Verdict: q.query("verdict"), Unlabelled: q.query("unlabelled") == "yes", Set: cmp.Or(failed.Set, q.query("set"), engine.DefaultQuestionSet)}
	filter := engine.FeedbackFilter{Verdict: engine.FeedbackVerdict(p.Verdict), Unlabelled: p.Unlabelled}
	p.First = q.query("after") == ""
	if !p.First {
		if err := decodePlace(q.query("after"), &filter.After); err != nil {
			return err
		}
	}
	entries, next, err := q.session.FeedbackList(q.ctx(), filter)
	if err != nil {
		return err
	}
	back := failed.Back
	if q.r.Method == http.MethodGet && q.r.URL.RawQuery != "" {
		back = "?" + q.r.URL.RawQuery
	}
	for i, e := range entries {
		l := entryOf(i, e, p.Set, failed)
		l.Form.Back = back
		p.Entries = append(p.Entries, l)
	}
	if next != nil {
		if p.Next, err = p.nextPath(*next); err != nil {
			return err
		}
	}
	for _, v := range []engine.FeedbackVerdict{engine.FeedbackRight, engine.FeedbackWrong, engine.FeedbackNotAsked} {
		p.Filters = append(p.Filters, labelFilter{v, feedbackWords[v].Word, string(v) == p.Verdict})
	}
	if p.Sets, err = q.setRows(); err != nil {
		return err
	}
	v := q.view("Evaluation", "Labels from feedback", p)
	v.Wide = true
	return q.renderStatus(status, "labels.html", v)
}

// decodePlace reads a place of nextPath. The error is assay.ErrInvalid.
func decodePlace(text string, place *engine.FeedbackPlace) error {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, place)
	}
	if err != nil {
		return fmt.Errorf("this is not a part of the list: %w", assay.ErrInvalid)
	}
	return nil
}

// nextPath returns the URL of the part of the list after a place.
func (p labelsPage) nextPath(after engine.FeedbackPlace) (string, error) {
	data, err := json.Marshal(after)
	if err != nil {
		return "", err
	}
	v := url.Values{"after": {base64.RawURLEncoding.EncodeToString(data)}, "set": {p.Set}}
	if p.Verdict != "" {
		v.Set("verdict", p.Verdict)
	}
	if p.Unlabelled {
		v.Set("unlabelled", "yes")
	}
	return "/labels?" + v.Encode(), nil
}

// setRows returns the question sets.
func (q *request) setRows() ([]setRow, error) {
	sets, err := q.session.QuestionSets(q.ctx())
	var rows []setRow
	for _, s := range sets {
		rows = append(rows, setRow{s, setPath(s.Name)})
	}
	return rows, err
}

// entryOf returns an entry of the list with its form.
func entryOf(i int, e engine.FeedbackEntry, set string, failed labelForm) labelEntry {
	l := labelEntry{FeedbackEntry: e, Words: feedbackWords[e.Verdict]}
	for _, name := range e.Sets {
		l.Sets = append(l.Sets, setLink{name, setPath(name)})
	}
	switch {
	case !e.Visible:
	case e.Verdict == engine.FeedbackRight && e.Status == assay.NotFound:
		l.OneClick = "The documents do not answer it."
	case e.Verdict == engine.FeedbackRight && e.Text != "":
		l.OneClick = "This answer and its citations are right."
	case e.Verdict == engine.FeedbackWrong && (e.Answer != "" || e.Place != nil):
		l.OneClick = "The correction is right."
	}
	l.Form = labelForm{ID: fmt.Sprint("e", i), Run: e.Run, User: e.User, Set: set, Answers: e.Answer}
	if e.Place != nil {
		l.Form.Document, l.Form.Quote = e.Place.Document, e.Place.Quote
	}
	if failed.Run == e.Run && failed.User == e.User {
		failed.ID = l.Form.ID
		l.Form = failed
	}
	return l
}

// addQuestion makes a question of feedback: by one click with the labels that the feedback gives, or with
// those of the form.
func addQuestion(q *request) error {
	form, labels, err := q.labelForm()
	if err != nil {
		return err
	}
	if q.r.PostForm.Get("by") == "click" {
		labels = nil
	}
	_, err = q.session.LabelFeedback(q.ctx(), form.Run, form.User, form.Set, labels)
	if errors.Is(err, assay.ErrInvalid) {
		form.Open, form.Problem = true, plainError(err)
		if errors.Is(err, engine.ErrNoLabel) {
			form.Problem = "Say what is right: an answer, a place in a document, or that the documents do not answer it."
		}
		return q.renderLabels(http.StatusBadRequest, form)
	}
	if err != nil {
		return err
	}
	return q.redirect("/labels"+form.Back, fmt.Sprintf("The question is in the set “%s”.", form.Set))
}

// labelForm reads the form for labels.
func (q *request) labelForm() (labelForm, *engine.Labels, error) {
	if err := q.parseForm(); err != nil {
		return labelForm{}, nil, err
	}
	field := func(name string) string { return strings.TrimSpace(q.r.PostForm.Get(name)) }
	f := labelForm{
		Run: field("run"), User: q.r.PostForm.Get("user"), Set: field("set"), Answers: field("answers"),
		Document: field("document"), Quote: field("quote"), Unanswerable: field("unanswerable") == "yes",
	}
	if back := field("back"); strings.HasPrefix(back, "?") {
		f.Back = back
	}
	l := &engine.Labels{Unanswerable: f.Unanswerable}
	for line := range strings.Lines(f.Answers) {
		if line = strings.TrimSpace(line); line != "" {
			l.Answers = append(l.Answers, line)
		}
	}
	for _, value := range q.r.PostForm["place"] {
		var p engine.LabelPlace
		if err := json.Unmarshal([]byte(value), &p); err != nil {
			return f, nil, fmt.Errorf("a place of the form: %w: %w", assay.ErrInvalid, err)
		}
		l.Places = append(l.Places, p)
	}
	if f.Document != "" || f.Quote != "" {
		l.Places = append(l.Places, engine.LabelPlace{Document: f.Document, Quote: f.Quote})
	}
	return f, l, nil
}

// A setPage is the data of the page of a question set.
type setPage struct {
	Name      string
	Path      string
	Questions []setQuestion // of the part of the list that is shown
	All       int
	Pages     listPager
	Hidden    int
	Evaluates bool // the user may start an evaluation with it
}

// A setQuestion is a question of a set with its form.
type setQuestion struct {
	engine.StoredQuestion
	Path string
	Form labelForm
}

func showSet(q *request) error { return q.renderSet(http.StatusOK, labelForm{}) }

// renderSet shows a set. failed is a form with its problem.
func (q *request) renderSet(status int, failed labelForm) error {
	set, err := q.session.QuestionSet(q.ctx(), q.path("set"))
	if err != nil {
		return err
	}
	p := setPage{Name: set.Name, Path: setPath(set.Name), Hidden: set.Hidden}
	p.Evaluates = q.may("StartEvaluation") && q.may("Answer") && q.may("Search") && len(set.Questions) > 0
	p.All = len(set.Questions)
	number := q.query("page")
	if i := slices.IndexFunc(set.Questions, func(s engine.StoredQuestion) bool { return s.ID == failed.Run }); i >= 0 {
		number = strconv.Itoa(i/questionsPerPage + 1)
	}
	p.Pages = newListPager(p.Path, url.Values{}, number, p.All, questionsPerPage)
	for i, s := range set.Questions[p.Pages.From:p.Pages.To] {
		row := setQuestion{StoredQuestion: s, Path: p.Path + "/" + url.PathEscape(s.ID)}
		if row.Form, err = formOf(i, s); err != nil {
			return err
		}
		if failed.Run == s.ID {
			failed.ID, failed.Places = row.Form.ID, row.Form.Places
			row.Form = failed
		}
		p.Questions = append(p.Questions, row)
	}
	return q.renderStatus(status, "labelset.html", q.view("Evaluation", set.Name, p))
}

// formOf returns the form for the labels of a question.
func formOf(i int, s engine.StoredQuestion) (labelForm, error) {
	f := labelForm{ID: fmt.Sprint("q", i), Run: s.ID, Answers: strings.Join(s.Answers, "\n"), Unanswerable: s.Unanswerable}
	for _, p := range s.Gold {
		value, err := json.Marshal(p)
		if err != nil {
			return f, err
		}
		f.Places = append(f.Places, labelPlace{p, string(value), true})
	}
	return f, nil
}

func changeLabels(q *request) error {
	form, labels, err := q.labelForm()
	if err != nil {
		return err
	}
	form.Run = q.path("run")
	_, err = q.session.SetLabels(q.ctx(), q.path("set"), form.Run, *labels)
	if errors.Is(err, assay.ErrInvalid) {
		form.Open, form.Problem = true, plainError(err)
		return q.renderSet(http.StatusBadRequest, form)
	}
	if err != nil {
		return err
	}
	return q.redirect(setPath(q.path("set")), "The labels are changed.")
}

func removeQuestion(q *request) error {
	set := q.path("set")
	if err := q.session.RemoveQuestion(q.ctx(), set, q.path("run")); err != nil {
		return err
	}
	sets, err := q.session.QuestionSets(q.ctx())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(sets, func(s engine.QuestionSetSummary) bool { return s.Name == set }) { // it was the last one
		return q.redirect("/labels", fmt.Sprintf("The question is removed, and with it the empty set “%s”.", set))
	}
	return q.redirect(setPath(set), "The question is removed.")
}

// setLines returns the lines of a set.
func (q *request) setLines() ([]json.RawMessage, error) {
	set, err := q.session.QuestionSet(q.ctx(), q.path("set"))
	if err != nil {
		return nil, err
	}
	return set.Lines()
}

// exportSet downloads a set in the form that assay eval reads.
func exportSet(q *request) error {
	lines, err := q.setLines()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, line := range lines {
		b.Write(line)
		b.WriteByte('\n')
	}
	h := q.w.Header()
	h.Set("Content-Type", "application/jsonl; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="questions.jsonl"`)
	h.Set("Cache-Control", "no-store")
	_, _ = q.w.Write(b.Bytes()) // the client may be gone
	return nil
}

// evaluateSet starts an evaluation with a set.
func evaluateSet(q *request) error {
	lines, err := q.setLines()
	if err != nil {
		return err
	}
	e, err := job.Start(q.ctx(), q.session, job.Spec{Name: q.path("set"), Questions: lines})
	if errors.Is(err, assay.ErrLocked) {
		return q.redirect(setPath(q.path("set")), "Another evaluation runs. Start this one when it has ended.")
	}
	if err != nil {
		return err
	}
	return q.redirect("/evaluations/"+url.PathEscape(e.ID), "The evaluation has begun.")
}
