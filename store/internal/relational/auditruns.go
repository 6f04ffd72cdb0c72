package relational

import (
	"context"
	"database/sql"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/assay-rag/assay"
)

const checkRunsQuery = `
SELECT r.number, r.id, r.principal, r.question, COALESCE(r.request, ''), r.created, r.answer, r.error, COALESCE(p.state, ''), COALESCE(p.steps, -1)
FROM runs r LEFT JOIN progress p ON p.run = r.number ORDER BY r.number`

// A checkedRun is a row of checkRunsQuery.
type checkedRun struct {
	number                           int64
	id, principal, question, request string
	created                          int64
	answer                           sql.NullString
	err                              string
	state                            assay.RunState
	steps                            int
}

// checkRuns compares the runs with what the log says about them.
func (c *auditChecker) checkRuns(ctx context.Context) error {
	var stored []checkedRun
	err := c.runs.Each(ctx, checkRunsQuery, nil, func(scan func(...any) error) error {
		var r checkedRun
		err := scan(&r.number, &r.id, &r.principal, &r.question, &r.request, &r.created, &r.answer, &r.err, &r.state, &r.steps)
		stored = append(stored, r)
		return err
	})
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, r := range stored {
		seen[r.id] = true
		want := c.state.runs[r.id]
		if want == nil || want.deleted {
			c.report(0, "run "+r.id, "it is stored, but the log does not have it")
			continue
		}
		if want.erased > 0 {
			c.checkErasedRun(r, want)
		} else {
			c.checkRun(r, want)
		}
		if err := c.checkJournal(ctx, r, want); err != nil {
			return err
		}
	}
	for id, want := range c.state.runs {
		if !want.deleted && !seen[id] {
			c.report(want.sequence, "run "+id, "it is missing: it is neither stored nor deleted by an act")
		}
	}
	return nil
}

// checkRun compares a run's row.
func (c *auditChecker) checkRun(r checkedRun, want *runState) {
	altered := func(what string) { c.report(want.sequence, "run "+r.id, "its %s was altered", what) }
	answer := ""
	if r.answer.Valid {
		answer = hashOf([]byte(r.answer.String))
	}
	if hashOf([]byte(r.question)) != want.Question {
		altered("question")
	}
	if hashOf([]byte(r.request)) != want.Request {
		altered("request")
	}
	if hashOf([]byte(r.principal)) != want.Principal {
		altered("principal")
	}
	if r.created != want.Created {
		altered("time")
	}
	if answer != want.answer {
		altered("answer")
	}
	if r.err != want.err {
		altered("error")
	}
	if r.state != want.state {
		c.report(want.sequence, "run "+r.id, "it is stored as %s, the log says %s", r.state, want.state)
	}
}

// checkErasedRun checks that nothing is left of an erased run but its ID, state and times.
func (c *auditChecker) checkErasedRun(r checkedRun, want *runState) {
	if r.question+r.request+r.err != "" || r.answer.Valid {
		c.report(want.erased, "run "+r.id, "it has a question, request, answer or error after it was erased")
	}
	if r.created != want.left.Created {
		c.report(want.erased, "run "+r.id, "its time was altered after it was erased")
	}
	if r.state != want.state {
		c.report(want.erased, "run "+r.id, "it is stored as %s, the log says %s", r.state, want.state)
	}
}

// checkJournal reads a run's records and compares the long values that it uses.
func (c *auditChecker) checkJournal(ctx context.Context, r checkedRun, want *runState) error {
	if r.steps != want.steps {
		c.report(want.sequence, "run "+r.id, "it counts %d records, the log has %d", r.steps, want.steps)
		return nil
	}
	j := journalReader{s: c.runs, run: r.id, erased: want.erased > 0, values: map[string][]byte{}}
	if _, err := j.read(ctx, r.number, 0, r.steps); err != nil {
		if !isDamage(err) {
			return err
		}
		c.report(want.sequence, "run "+r.id, "%v", err)
		return nil
	}
	uses := map[string]bool{}
	err := c.runs.Each(ctx, `
SELECT v.hash FROM value_uses u JOIN long_values v ON v.number = u.value WHERE u.run = ?`, []any{r.number}, func(scan func(...any) error) error {
		var hash []byte
		err := scan(&hash)
		uses[hex.EncodeToString(hash)] = true
		return err
	})
	for hash := range j.values {
		if !uses[hash] {
			c.report(want.sequence, "run "+r.id, "its use of the value %s is not stored", hash)
		}
		delete(uses, hash)
	}
	for _, hash := range slices.Sorted(maps.Keys(uses)) {
		c.report(want.sequence, "run "+r.id, "it does not use the value %s", hash)
	}
	return err
}

// checkReviews compares the reviews, with the drafts that wait.
func (c *auditChecker) checkReviews(ctx context.Context) error {
	seen := map[string]bool{}
	err := c.runs.Each(ctx, `
SELECT r.id, v.open, v.version, v.created, v.state, v.draft FROM reviews v JOIN runs r ON r.number = v.run`, nil, func(scan func(...any) error) error {
		var id, state, draft string
		var open int64
		var got reviewStored
		if err := scan(&id, &open, &got.Version, &got.Created, &state, &draft); err != nil {
			return err
		}
		seen[id] = true
		got.Open, got.Case, got.Draft = open == 1, hashOf([]byte(state)), hashOf([]byte(draft))
		r := c.state.runs[id]
		if r == nil { // reported by checkRuns
			return nil
		}
		if r.review == nil || r.erased > 0 {
			c.report(r.erased, "review of run "+id, "it is stored, but the log does not have it")
			return nil
		}
		c.checkReview(id, open, got, r.review)
		return nil
	})
	for id, r := range c.state.runs {
		if r.review != nil && !r.deleted && r.erased == 0 && !seen[id] {
			c.report(r.review.sequence, "review of run "+id, "it is missing")
		}
	}
	return err
}

// checkReview compares the row of a review.
func (c *auditChecker) checkReview(id string, open int64, got reviewStored, want *reviewState) {
	altered := func(what string) { c.report(want.sequence, "review of run "+id, "its %s was altered", what) }
	if got.Draft != want.Draft {
		altered("draft")
	}
	if got.Case != want.Case {
		altered("case")
	}
	if got.Open != want.Open || open < 0 || open > 1 {
		altered("state")
	}
	if got.Version != want.Version {
		altered("version")
	}
	if got.Created != want.Created {
		altered("time")
	}
}

// checkOffers compares the offers of answers.
func (c *auditChecker) checkOffers(ctx context.Context) error {
	seen := map[string]bool{}
	err := c.runs.Each(ctx, `SELECT r.id, o.key FROM offers o JOIN runs r ON r.number = o.run`, nil, func(scan func(...any) error) error {
		var id, key string
		if err := scan(&id, &key); err != nil {
			return err
		}
		seen[id] = true
		r := c.state.runs[id]
		switch {
		case r == nil: // reported by checkRuns
		case !c.state.offers(r):
			c.report(0, "offer of run "+id, "it is stored, but the log does not have it")
		case r.offer != key:
			c.report(r.sequence, "offer of run "+id, "its key was altered")
		}
		return nil
	})
	for id, r := range c.state.runs {
		if !r.deleted && c.state.offers(r) && !seen[id] {
			c.report(r.sequence, "offer of run "+id, "it is missing")
		}
	}
	return err
}

// checkPins compares the versions that runs keep.
func (c *auditChecker) checkPins(ctx context.Context) error {
	type runPin struct {
		run string
		pin pin
	}
	seen := map[runPin]bool{}
	err := c.runs.Each(ctx, `SELECT r.id, p.document, p.version FROM pins p JOIN runs r ON r.number = p.run`, nil, func(scan func(...any) error) error {
		var p runPin
		if err := scan(&p.run, &p.pin.Document, &p.pin.Version); err != nil {
			return err
		}
		seen[p] = true
		if r := c.state.runs[p.run]; r != nil && (r.erased > 0 || !r.pins[p.pin]) {
			c.report(0, "run "+p.run, "it keeps version %s of document %s, which the log does not say", p.pin.Version, p.pin.Document)
		}
		return nil
	})
	for id, r := range c.state.runs {
		if r.deleted || r.erased > 0 {
			continue
		}
		for p := range r.pins {
			if !seen[runPin{id, p}] {
				c.report(r.sequence, "run "+id, "it does not keep version %s of document %s any more", p.Version, p.Document)
			}
		}
	}
	return err
}

// checkValues checks the long values that no journal was read with.
func (c *auditChecker) checkValues(ctx context.Context) error {
	return c.runs.Each(ctx, `
SELECT hash, data FROM long_values v`, nil, func(scan func(...any) error) error {
		var hash, data []byte
		if err := scan(&hash, &data); err != nil {
			return err
		}
		if got := hashOf(data); got != hex.EncodeToString(hash) {
			c.report(0, "value "+hex.EncodeToString(hash), "it was altered")
		}
		return nil
	})
}
