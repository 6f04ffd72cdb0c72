package relational

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Feedbacks implements store.Tenant.
func (t *Tenant) Feedbacks() store.Feedbacks { return feedbacks{t} }

// feedbacks implements store.Feedbacks.
type feedbacks struct{ t *Tenant }

// Set implements store.Feedbacks.
func (f feedbacks) Set(ctx context.Context, fb store.Feedback, act store.Act) error {
	err := checkKind(act)
	switch {
	case err != nil:
	case fb.User == "" || fb.Verdict == "":
		err = invalid("the feedback has no user or no verdict")
	case !json.Valid(fb.Body):
		err = invalid("the body of the feedback is not JSON")
	default:
		err = runs(f).updateRun(ctx, fb.Run, func(t Tx, number int64) error {
			if err := notErased(ctx, t, number); err != nil {
				return err
			}
			_, err := t.Exec(ctx, `
INSERT INTO feedback (run, "user", verdict, body, updated) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (run, "user") DO UPDATE SET verdict = ?3, body = ?4, updated = ?5`,
				number, fb.User, fb.Verdict, string(fb.Body), f.t.now().UnixNano())
			if err != nil {
				return err
			}
			act.Subject = fb.Run
			return appendAct(ctx, t, f.t.now(), act)
		})
	}
	return wrap(err, "feedback on run %s", fb.Run)
}

func feedbackQuery(d Dialect) string {
	return `
SELECT r.id, f."user", f.verdict, f.body, f.updated,
	(` + d.Array("SELECT set_name FROM questions q WHERE q.run = r.id ORDER BY set_name", "set_name") + `)
FROM feedback f JOIN runs r ON r.number = f.run `
}

// scanFeedback reads a row of feedbackQuery.
func scanFeedback(scan func(...any) error) (store.Feedback, error) {
	var f store.Feedback
	var body, sets string
	var updated int64
	if err := scan(&f.Run, &f.User, &f.Verdict, &body, &updated, &sets); err != nil {
		return f, err
	}
	f.Body, f.Updated = json.RawMessage(body), time.Unix(0, updated).UTC()
	return f, decodeJSON("question sets", sets, &f.Sets)
}

// Feedback implements store.Feedbacks.
func (f feedbacks) Feedback(ctx context.Context, run, user string) (store.Feedback, error) {
	fb, err := scanFeedback(func(dest ...any) error {
		return f.t.runs.Row(ctx, feedbackQuery(f.t.runs.Dialect())+`WHERE r.id = ? AND f."user" = ?`, []any{run, user}, dest...)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	if err != nil {
		return store.Feedback{}, wrap(err, "feedback on run %s", run)
	}
	return fb, nil
}

const feedbackOrder = `
WHERE (?1 = '' OR f.verdict = ?1) AND (?2 = 0 OR NOT EXISTS (SELECT 1 FROM questions q WHERE q.run = r.id))
	AND ((f.updated, r.id, f."user") < (?3, ?4, ?5) OR ?3 = 0)
ORDER BY f.updated DESC, r.id DESC, f."user" DESC LIMIT ?6`

// List implements store.Feedbacks.
func (f feedbacks) List(ctx context.Context, which store.FeedbackFilter) ([]store.Feedback, error) {
	after, limit := int64(0), noLimit
	if !which.After.Updated.IsZero() {
		after = which.After.Updated.UnixNano()
	}
	if which.Limit > 0 {
		limit = which.Limit
	}
	var all []store.Feedback
	err := f.t.runs.View(ctx, func(s Reader) error {
		args := []any{which.Verdict, which.Unlabelled, after, which.After.Run, which.After.User, limit}
		return s.Each(ctx, feedbackQuery(f.t.runs.Dialect())+feedbackOrder, args, func(scan func(...any) error) error {
			fb, err := scanFeedback(scan)
			all = append(all, fb)
			return err
		})
	})
	return all, wrap(err, "list feedback")
}

// Remove implements store.Feedbacks.
func (f feedbacks) Remove(ctx context.Context, run, user string, act store.Act) error {
	err := checkKind(act)
	if err == nil {
		err = runs(f).updateRun(ctx, run, func(t Tx, number int64) error {
			n, err := t.Exec(ctx, `DELETE FROM feedback WHERE run = ? AND "user" = ?`, number, user)
			if err == nil && n == 0 {
				err = assay.ErrNotFound
			}
			if err != nil {
				return err
			}
			act.Subject = run
			return appendAct(ctx, t, f.t.now(), act)
		})
	}
	return wrap(err, "remove the feedback on run %s", run)
}
