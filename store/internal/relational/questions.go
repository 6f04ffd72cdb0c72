package relational

import (
	"context"
	"encoding/json"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Questions implements store.Tenant.
func (t *Tenant) Questions() store.Questions { return questions{t} }

// questions implements store.Questions.
type questions struct{ t *Tenant }

// encodeQuestion checks a question and returns its documents as JSON.
func encodeQuestion(q store.Question, act store.Act) (documents string, err error) {
	if err := checkKind(act); err != nil {
		return "", err
	}
	if err := checkName("set", q.Set); err != nil {
		return "", err
	}
	if !json.Valid(q.Line) {
		return "", invalid("the line is not JSON")
	}
	data, err := json.Marshal(append([]string{}, q.Documents...))
	return string(data), err
}

// Add implements store.Questions.
func (q questions) Add(ctx context.Context, question store.Question, act store.Act) error {
	documents, err := encodeQuestion(question, act)
	if err == nil {
		err = runs(q).updateRun(ctx, question.Run, func(t Tx, number int64) error {
			if err := notErased(ctx, t, number); err != nil {
				return err
			}
			var n int
			if err := t.Row(ctx, `SELECT COUNT(*) FROM questions WHERE set_name = ?`, []any{question.Set}, &n); err != nil {
				return err
			}
			if n >= store.MaxQuestions {
				return invalid("the set %q has %d questions, the most that it can have", question.Set, n)
			}
			added, err := t.Exec(ctx, `INSERT INTO questions (set_name, run, line, documents, updated) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
				question.Set, question.Run, string(question.Line), documents, q.t.now().UnixNano())
			if err == nil && added == 0 {
				err = invalid("the set %q has a question from it", question.Set)
			}
			if err != nil {
				return err
			}
			act.Subject = question.Run
			return appendAct(ctx, t, q.t.now(), act)
		})
	}
	return wrap(err, "add a question from run %s", question.Run)
}

// Change implements store.Questions.
func (q questions) Change(ctx context.Context, question store.Question, act store.Act) error {
	documents, err := encodeQuestion(question, act)
	if err == nil {
		err = q.update(ctx, question.Run, act, `UPDATE questions SET line = ?3, documents = ?4, updated = ?5 WHERE set_name = ?1 AND run = ?2`,
			question.Set, question.Run, string(question.Line), documents, q.t.now().UnixNano())
	}
	return wrap(err, "change the question from run %s", question.Run)
}

// Remove implements store.Questions.
func (q questions) Remove(ctx context.Context, set, run string, act store.Act) error {
	err := checkKind(act)
	if err == nil {
		err = q.update(ctx, run, act, `DELETE FROM questions WHERE set_name = ? AND run = ?`, set, run)
	}
	return wrap(err, "remove the question from run %s", run)
}

// update changes the row of a question and appends an act. The error is assay.ErrNotFound if there is no
// such row.
func (q questions) update(ctx context.Context, run string, act store.Act, query string, args ...any) error {
	u, err := q.t.RunsUpdater(ctx)
	if err != nil {
		return err
	}
	return u.Update(ctx, func(t Tx) error {
		n, err := t.Exec(ctx, query, args...)
		if err == nil && n == 0 {
			err = assay.ErrNotFound
		}
		if err != nil {
			return err
		}
		act.Subject = run
		return appendAct(ctx, t, q.t.now(), act)
	})
}

// Sets implements store.Questions.
func (q questions) Sets(ctx context.Context) ([]store.QuestionSet, error) {
	var all []store.QuestionSet
	err := q.t.runs.View(ctx, func(s Reader) error {
		return s.Each(ctx, `SELECT set_name, COUNT(*), MAX(updated) FROM questions GROUP BY set_name ORDER BY set_name`, nil,
			func(scan func(...any) error) error {
				var set store.QuestionSet
				var updated int64
				err := scan(&set.Name, &set.Questions, &updated)
				set.Updated = time.Unix(0, updated).UTC()
				all = append(all, set)
				return err
			})
	})
	return all, wrap(err, "list question sets")
}

// Set implements store.Questions.
func (q questions) Set(ctx context.Context, name string) ([]store.Question, error) {
	var all []store.Question
	err := q.t.runs.View(ctx, func(s Reader) error {
		return s.Each(ctx, `SELECT run, line, documents, updated FROM questions WHERE set_name = ? ORDER BY number`, []any{name},
			func(scan func(...any) error) error {
				question := store.Question{Set: name}
				var line, documents string
				var updated int64
				if err := scan(&question.Run, &line, &documents, &updated); err != nil {
					return err
				}
				question.Line, question.Updated = json.RawMessage(line), time.Unix(0, updated).UTC()
				all = append(all, question)
				return decodeJSON("documents of a question", documents, &all[len(all)-1].Documents)
			})
	})
	if err == nil && len(all) == 0 {
		err = assay.ErrNotFound
	}
	return all, wrap(err, "question set %.64q", name)
}
