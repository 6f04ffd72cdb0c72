package ui

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/job"
	"github.com/assay-rag/assay/eval/report"
	"github.com/assay-rag/assay/server"
	"github.com/assay-rag/assay/strategy"
)

// maxQuestionSet is the most bytes of a set of questions.
const maxQuestionSet = 16 << 20

// evaluationRoutes are about evaluations and feedback.
func evaluationRoutes() []Route {
	start := action("/evaluations", "evaluations.start", "StartEvaluation", startEvaluation)
	start.MaxBody = 2*maxQuestionSet + 1<<20 // the file and the field
	return []Route{
		page("/evaluations", "evaluations", "Evaluations", showEvaluations),
		start,
		page("/evaluations/{id}", "evaluation", "Evaluation", showEvaluation),
		page("/evaluations/{id}/progress", "evaluation.progress", "Evaluation", showProgress),
		action("/evaluations/{id}/cancel", "evaluation.cancel", "CancelEvaluation", cancelEvaluation),
		page("/evaluations/{id}/compare", "evaluation.compare", "Evaluation", showComparison),
	}
}

// evaluationStates are the words for the states of an evaluation.
var evaluationStates = map[engine.EvaluationState]statusWords{
	engine.EvaluationRunning:     {"wait", "clock", "Running", "It goes on in the background."},
	engine.EvaluationDone:        {"good", "check", "Done", "All questions were asked."},
	engine.EvaluationFailed:      {"bad", "cross", "Failed", "It ended with an error."},
	engine.EvaluationCancelled:   {"soft", "stop", "Cancelled", "It was cancelled before its end."},
	engine.EvaluationInterrupted: {"warn", "warning", "Interrupted", "The server stopped before its end. Start it again."},
}

// An evaluationRow is an evaluation in a list.
type evaluationRow struct {
	engine.Evaluation
	Words   statusWords
	Systems []systemRow
}

// A systemRow is a strategy with its share of right answers.
type systemRow struct {
	Name             string
	Known            bool
	Right, Low, High float64
}

func newEvaluationRow(e engine.Evaluation) evaluationRow {
	return evaluationRow{Evaluation: e, Words: evaluationStates[e.State]}
}

// An evaluationList is the data of the list of evaluations.
type evaluationList struct {
	Rows  []evaluationRow
	Pages listPager
	Form  evaluationForm
	Start bool // the user may start one
}

// An evaluationForm is what the user typed to start an evaluation, and what can be chosen.
type evaluationForm struct {
	Name, Questions string
	Models          bool
	Set             string // a stored set in place of Questions; empty: none
	Sets            []choice
	Strategies      []choice
	Collections     []choice
	Problem         string // why it was not started
	Field           string // the field that the problem is about; empty: none
	Most            int
}

// A choice is an entry that can be chosen.
type choice struct {
	Name, Says string
	Chosen     bool
}

// evaluationsPerPage is how many evaluations a page lists.
const evaluationsPerPage = 20

func showEvaluations(q *request) error {
	return q.renderEvaluations(http.StatusOK, evaluationForm{Strategies: []choice{{Name: strategy.Names()[0], Chosen: true}}})
}

// renderEvaluations writes the list with the form.
func (q *request) renderEvaluations(status int, form evaluationForm) error {
	all, err := q.session.Evaluations(q.ctx())
	if err != nil {
		return err
	}
	data := evaluationList{Start: q.may("StartEvaluation") && q.may("Begin") && q.may("Collections")}
	data.Pages = newListPager("/evaluations", url.Values{}, q.query("page"), len(all), evaluationsPerPage)
	for _, e := range all[data.Pages.From:data.Pages.To] {
		row := newEvaluationRow(e)
		if e.State == engine.EvaluationDone {
			if e, err = q.session.Evaluation(q.ctx(), e.ID); err != nil {
				return err
			}
			row.Systems = systemRows(e)
		}
		data.Rows = append(data.Rows, row)
	}
	if data.Start {
		if data.Form, err = q.choices(form); err != nil {
			return err
		}
	}
	v := q.view("Evaluation", "Evaluation", data)
	v.Wide = true
	return q.renderStatus(status, "evaluations.html", v)
}

// systemRows returns the leading figure of each strategy. A result of another kind has none.
func systemRows(e engine.Evaluation) []systemRow {
	r, err := job.ResultOf(e)
	if err != nil {
		return nil
	}
	var rows []systemRow
	for _, s := range r.Systems {
		row := systemRow{Name: s.Name}
		if i := slices.IndexFunc(s.Figures, func(f answers.Figure) bool { return f.Name == "right" }); i >= 0 {
			f := s.Figures[i]
			row.Known, row.Right, row.Low, row.High = true, f.Mean, f.Low, f.High
		}
		rows = append(rows, row)
	}
	return rows
}

// choices completes a form with everything that can be chosen.
func (q *request) choices(form evaluationForm) (evaluationForm, error) {
	form.Most = job.MaxQuestions
	collections, err := q.session.Collections(q.ctx())
	if err != nil {
		return form, err
	}
	chosen := func(all []choice, name string) bool {
		return slices.ContainsFunc(all, func(c choice) bool { return c.Name == name && c.Chosen })
	}
	var strategies, found []choice
	for _, s := range strategy.Specs() {
		strategies = append(strategies, choice{s.Name, s.Summary, chosen(form.Strategies, s.Name)})
	}
	for _, c := range collections {
		found = append(found, choice{c.Name, count(c.Documents, "document"), chosen(form.Collections, c.Name)})
	}
	form.Strategies, form.Collections = strategies, found
	if !q.may("QuestionSets") {
		return form, nil
	}
	sets, err := q.session.QuestionSets(q.ctx())
	for _, set := range sets {
		form.Sets = append(form.Sets, choice{set.Name, count(set.Questions, "question"), set.Name == form.Set})
	}
	return form, err
}

// storedLines returns the questions of a stored set that the user sees.
func (q *request) storedLines(name string) (lines []json.RawMessage, problem string, err error) {
	set, err := q.session.QuestionSet(q.ctx(), name)
	if errors.Is(err, assay.ErrNotFound) {
		return nil, "There is no such set. Choose another one.", nil
	}
	if err != nil {
		return nil, "", err
	}
	lines, err = set.Lines()
	if len(lines) == 0 {
		problem = "The set has no question that you may see."
	}
	return lines, problem, err
}

func startEvaluation(q *request) error {
	form, err := q.evaluationForm()
	if err != nil {
		return err
	}
	spec, err := q.evaluationSpec(&form)
	if err != nil {
		return err
	}
	if form.Name == "" {
		form.Problem, form.Field = "Give the evaluation a name.", "name"
	}
	if form.Problem != "" {
		return q.renderEvaluations(http.StatusBadRequest, form)
	}
	e, err := job.Start(q.ctx(), q.session, spec)
	if err != nil {
		return q.failStart(err, form)
	}
	return q.redirect("/evaluations/"+url.PathEscape(e.ID), "The evaluation runs.")
}

// evaluationSpec returns what a form asks for. It sets form.Problem if the questions cannot be used.
func (q *request) evaluationSpec(form *evaluationForm) (spec job.Spec, err error) {
	for _, c := range form.Strategies {
		spec.Strategies = append(spec.Strategies, c.Name)
	}
	for _, c := range form.Collections {
		spec.Collections = append(spec.Collections, c.Name)
	}
	form.Name = cmp.Or(form.Name, form.Set)
	spec.Name, spec.Models = form.Name, form.Models
	switch {
	case form.Problem != "":
	case form.Set != "" && strings.TrimSpace(form.Questions) != "":
		form.Problem, form.Field = "Choose a stored set, or paste or upload questions, not both.", "set"
	case form.Set != "":
		form.Field = "set"
		spec.Questions, form.Problem, err = q.storedLines(form.Set)
	default:
		form.Field = "questions"
		spec.Questions, form.Problem = questionLines(form.Questions)
	}
	return spec, err
}

// failStart shows the form again with the reason why an evaluation did not start.
func (q *request) failStart(err error, form evaluationForm) error {
	problem := q.pages.config.Server.Problem(q.r, err)
	if problem.Status >= http.StatusInternalServerError || server.IsUnauthenticated(err) {
		return err
	}
	form.Problem, form.Field = problem.Detail, ""
	switch {
	case errors.Is(err, assay.ErrLocked):
		form.Problem = "Another evaluation runs. Wait until it has ended, or cancel it."
	case strings.HasPrefix(problem.Detail, "question "), strings.Contains(problem.Detail, "holds no question"), strings.Contains(problem.Detail, "questions, want"):
		form.Field = "questions"
	case strings.Contains(problem.Detail, "the name of the evaluation"):
		form.Field = "name"
	}
	return q.renderEvaluations(problem.Status, form)
}

// evaluationForm reads the form. A file takes the place of the text in the field.
func (q *request) evaluationForm() (evaluationForm, error) {
	var form evaluationForm
	err := q.r.ParseMultipartForm(1 << 20)
	if errors.Is(err, http.ErrNotMultipart) {
		err = q.parseForm()
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); err != nil && !large {
		err = fmt.Errorf("read the form: %w: %w", assay.ErrInvalid, err)
	}
	if err != nil {
		return form, err
	}
	sent := q.r.PostForm
	form.Name, form.Questions, form.Models = strings.TrimSpace(sent.Get("name")), sent.Get("questions"), sent.Get("models") != ""
	form.Set = sent.Get("set")
	for _, name := range sent["strategy"] {
		form.Strategies = append(form.Strategies, choice{Name: name, Chosen: true})
	}
	for _, name := range sent["collection"] {
		form.Collections = append(form.Collections, choice{Name: name, Chosen: true})
	}
	if q.r.MultipartForm == nil {
		return form, nil
	}
	defer func() { _ = q.r.MultipartForm.RemoveAll() }() // temporary files
	for _, header := range q.r.MultipartForm.File["file"] {
		if header.Size == 0 {
			continue // no file was chosen
		}
		f, err := header.Open()
		if err != nil {
			return form, err
		}
		data, err := io.ReadAll(io.LimitReader(f, maxQuestionSet+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return form, err
		}
		form.Questions = strings.ToValidUTF8(string(data), "\ufffd")
		form.Name = cmp.Or(form.Name, strings.TrimSuffix(header.Filename, ".jsonl"))
	}
	if len(form.Questions) > maxQuestionSet {
		form.Problem, form.Field, form.Questions = "The set has more than "+size(maxQuestionSet)+".", "questions", ""
	}
	return form, nil
}

// questionLines returns the lines of a set. problem says why it cannot be used; empty: it can.
func questionLines(text string) (lines []json.RawMessage, problem string) {
	s := bufio.NewScanner(strings.NewReader(text))
	s.Buffer(nil, maxQuestionSet)
	for n := 1; s.Scan(); n++ {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		if !json.Valid(line) || line[0] != '{' {
			return nil, fmt.Sprintf("Line %d is not a JSON object.", n)
		}
		lines = append(lines, bytes.Clone(line))
	}
	switch {
	case s.Err() != nil:
		return nil, "A line is too long."
	case len(lines) == 0:
		return nil, "Paste questions or choose a file: one JSON object in each line."
	case len(lines) > job.MaxQuestions:
		return nil, fmt.Sprintf("The set has %s, at most %d are possible.", count(len(lines), "question"), job.MaxQuestions)
	}
	return lines, ""
}

// An evaluationPage is the data of the page of one evaluation.
type evaluationPage struct {
	evaluationRow
	Report    report.Page
	Measured  bool // it has a result of package job
	Matrix    []matrixRow
	Questions questionTable
	Others    []engine.Evaluation // with which it can be compared
	Before    string              // the last of them that started before it, or the newest one
}

// A matrixRow is a status with how many answers of each strategy have it, right and wrong.
type matrixRow struct {
	Status string
	Words  statusWords
	Cells  []matrixCell
}

// A matrixCell counts answers.
type matrixCell struct{ Right, Wrong int }

// All is the sum.
func (c matrixCell) All() int { return c.Right + c.Wrong }

func showEvaluation(q *request) error {
	e, err := q.session.Evaluation(q.ctx(), q.path("id"))
	if err != nil {
		return err
	}
	p := evaluationPage{evaluationRow: newEvaluationRow(e)}
	if r, err := job.ResultOf(e); err == nil && len(r.Systems) > 0 {
		p.Measured = true
		p.Systems = systemRows(e)
		p.Report = report.NewPage(r.Measured())
		p.Matrix = matrixOf(r)
		if p.Questions, err = q.questionTable(e.ID, r); err != nil {
			return err
		}
		if p.Others, err = q.comparable(e); err != nil {
			return err
		}
		p.Before = lastBefore(p.Others, e)
	}
	v := q.view("Evaluation", cmp.Or(e.Name, "Evaluation"), p)
	v.Wide = true
	return q.render("evaluation.html", v)
}

// comparable returns the other evaluations that are done, the newest first.
func (q *request) comparable(e engine.Evaluation) ([]engine.Evaluation, error) {
	all, err := q.session.Evaluations(q.ctx())
	return slices.DeleteFunc(all, func(o engine.Evaluation) bool { return o.ID == e.ID || o.State != engine.EvaluationDone }), err
}

// lastBefore returns the ID of the last evaluation that started before another one; else the newest one.
func lastBefore(all []engine.Evaluation, e engine.Evaluation) string {
	for _, o := range all {
		if o.Started.Before(e.Started) {
			return o.ID
		}
	}
	if len(all) > 0 {
		return all[0].ID
	}
	return ""
}

// matrixOf counts the answers by status.
func matrixOf(r job.Result) []matrixRow {
	var rows []matrixRow
	for _, q := range r.Questions {
		status, words := string(q.Status), statuses[q.Status]
		if q.Failed || words.Word == "" {
			status, words = "error", statusWords{"bad", "warning", "Failed", "The run ended with an error."}
		}
		at := slices.IndexFunc(rows, func(m matrixRow) bool { return m.Status == status })
		if at < 0 {
			at = len(rows)
			rows = append(rows, matrixRow{status, words, make([]matrixCell, len(r.Systems))})
		}
		i := slices.IndexFunc(r.Systems, func(s answers.System) bool { return s.Name == q.Strategy })
		if i < 0 {
			continue
		}
		if q.Right {
			rows[at].Cells[i].Right++
		} else {
			rows[at].Cells[i].Wrong++
		}
	}
	return rows
}

// A questionTable lists the questions of an evaluation.
type questionTable struct {
	Rows     []questionRow
	Wrong    bool   // only those that are
	Strategy string // only this one's; empty: all
	Names    []string
	Pages    listPager
}

// A questionRow is a question with its outcome.
type questionRow struct {
	job.Question
	Words statusWords
	Text  string // empty: the user may not see the run
	Link  string
	Stage string
}

// questionsPerPage is how many questions a page lists.
const questionsPerPage = 50

// questionTable returns the questions that the URL asks for. The text of a question is that of its run,
// if the user may see it.
func (q *request) questionTable(id string, r job.Result) (questionTable, error) {
	t := questionTable{Wrong: q.query("only") == "wrong", Strategy: q.query("strategy")}
	var all []job.Question
	for _, s := range r.Systems {
		t.Names = append(t.Names, s.Name)
	}
	for _, one := range r.Questions {
		if (!t.Wrong || !one.Right) && (t.Strategy == "" || t.Strategy == one.Strategy) {
			all = append(all, one)
		}
	}
	query := url.Values{}
	if t.Wrong {
		query.Set("only", "wrong")
	}
	if t.Strategy != "" {
		query.Set("strategy", t.Strategy)
	}
	t.Pages = newListPager("/evaluations/"+url.PathEscape(id), query, q.query("page"), len(all), questionsPerPage)
	for _, one := range all[t.Pages.From:t.Pages.To] {
		row, err := q.questionRow(one)
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// questionRow returns a question with the text of its run.
func (q *request) questionRow(one job.Question) (questionRow, error) {
	row := questionRow{Question: one, Words: statuses[one.Status], Stage: strings.ReplaceAll(string(one.Lost), "_", " ")}
	if one.Failed || row.Words.Word == "" {
		row.Words = statusWords{"bad", "warning", "Failed", "The run ended with an error."}
	}
	if one.Run == "" || !q.may("Run") {
		return row, nil
	}
	run, _, err := q.session.Run(q.ctx(), one.Run)
	if errors.Is(err, assay.ErrNotFound) || errors.Is(err, assay.ErrForbidden) {
		return row, nil // it is another user's, or gone
	}
	row.Text, row.Link = run.Question, runPath(one.Run)
	return row, err
}

func showProgress(q *request) error {
	e, err := q.session.Evaluation(q.ctx(), q.path("id"))
	if err != nil {
		return err
	}
	return q.fragment("evaluation.html", "evaluation-progress", q.view("Evaluation", e.Name, newEvaluationRow(e)))
}

func cancelEvaluation(q *request) error {
	id := q.path("id")
	if err := q.session.CancelEvaluation(q.ctx(), id); err != nil && !errors.Is(err, assay.ErrInvalid) {
		return err
	} else if err != nil {
		return q.redirect("/evaluations/"+url.PathEscape(id), "It does not run here any more.")
	}
	return q.redirect("/evaluations/"+url.PathEscape(id), "The evaluation is being cancelled.")
}
