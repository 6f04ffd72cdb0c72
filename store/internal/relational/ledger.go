package relational

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
)

// Ledger implements store.Tenant.
func (t *Tenant) Ledger() store.Ledger { return ledger{t} }

// A ledger implements store.Ledger.
type ledger struct{ t *Tenant }

var _ store.Ledger = ledger{}

// dayOf and monthOf return the names of the UTC day and month of a time.
func dayOf(now time.Time) string   { return now.UTC().Format("2006-01-02") }
func monthOf(now time.Time) string { return now.UTC().Format("2006-01") }

// monthOfDay returns the name of the month of a day.
func monthOfDay(day string) string { return day[:len("2006-01")] }

// amountOf returns the amount of a usage. Each number is at most limit.Most, so that sums do not
// overflow.
func amountOf(u assay.Usage) store.Amount {
	of := func(n int64) int64 { return min(max(n, 0), limit.Most) }
	return store.Amount{Calls: of(int64(u.Calls)), Tokens: of(of(int64(u.InputTokens)) + of(int64(u.OutputTokens))), CostMicros: of(u.CostMicros)}
}

// Admit implements store.Ledger.
func (l ledger) Admit(ctx context.Context, a store.Admission) (store.Account, error) {
	acc, err := l.admit(ctx, a)
	if err != nil {
		return nil, wrap(err, "admit %s", a.Principal.User)
	}
	return acc, nil
}

func (l ledger) admit(ctx context.Context, a store.Admission) (*account, error) {
	u, err := l.t.RunsUpdater(ctx)
	if err != nil {
		return nil, err
	}
	o, err := l.t.leaseOwner()
	if err != nil {
		return nil, err
	}
	acc := &account{
		holder: holder{l: l, u: u, token: rand.Text(), subjects: limit.SubjectsOf(a.Principal)},
		owner:  o, renewed: make(chan struct{}),
	}
	o.hold(acc.token)
	var refused *limit.Error
	err = u.Update(ctx, func(t Tx) (err error) {
		refused, err = l.refusedAdmission(ctx, t, a)
		if err != nil || refused != nil {
			return err
		}
		for _, s := range acc.subjects {
			_, err := t.Exec(ctx, `
INSERT INTO admissions (subject, token, run, owner, pid, machine, boot, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
				s, acc.token, a.Run, o.word, os.Getpid(), l.t.opts.Host.Machine, l.t.opts.Host.Boot, acc.expiry())
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && refused != nil {
		err = refused
	}
	if err != nil {
		o.drop(acc.token)
		return nil, err
	}
	renewCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	acc.cancel = cancel
	go acc.renew(renewCtx)
	return acc, nil
}

// refusedAdmission returns the reason to refuse an admission, or nil. It settles what dead processes
// left before it refuses.
func (l ledger) refusedAdmission(ctx context.Context, t Tx, a store.Admission) (*limit.Error, error) {
	for again := true; ; again = false {
		refused, err := l.admissionBound(ctx, t, a)
		if err != nil || refused == nil || !again {
			return refused, err
		}
		if n, err := l.reap(ctx, t); err != nil || n == 0 {
			return refused, err
		}
	}
}

// admissionBound returns the first bound that an admission would exceed.
func (l ledger) admissionBound(ctx context.Context, t Tx, a store.Admission) (*limit.Error, error) {
	if a.Run == "" {
		return nil, nil
	}
	var exists bool
	if err := t.Row(ctx, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)`, []any{a.Run}, &exists); err != nil {
		return nil, err
	}
	now := l.t.now()
	for _, b := range limit.OfRequests(a.Bounds) {
		var spent, held int64
		switch {
		case b.Measure == limit.Runs:
			if err := t.Row(ctx, `SELECT COUNT(*) FROM admissions WHERE subject = ? AND run <> ''`, []any{b.Subject}, &spent); err != nil {
				return nil, err
			}
		case exists: // it was counted when it was created
			continue
		default:
			sum, err := l.spent(ctx, t, b.Subject, periodOf(b.Measure, now))
			if err != nil {
				return nil, err
			}
			spent = sum.Requests
			if held, err = pendingRequests(ctx, t, b.Subject); err != nil {
				return nil, err
			}
		}
		if spent+held+1 > b.Most {
			return limit.NewError(b, spent, held, 1, now), nil
		}
	}
	return nil, nil
}

// pendingRequests counts the admissions whose run is not created yet. They may become requests of the
// current day.
func pendingRequests(ctx context.Context, t Reader, subject string) (n int64, err error) {
	err = t.Row(ctx, `
SELECT COUNT(*) FROM admissions a WHERE a.subject = ? AND a.run <> '' AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = a.run)`,
		[]any{subject}, &n)
	return n, err
}

// periodOf returns the name of the period of a measure that holds now.
func periodOf(m limit.Measure, now time.Time) string {
	if m.Period() == "month" {
		return monthOf(now)
	}
	return dayOf(now)
}

// spent returns what a subject has spent in a period.
func (l ledger) spent(ctx context.Context, t Reader, subject, period string) (a store.Amount, err error) {
	err = t.Row(ctx, `SELECT requests, calls, tokens, micros FROM spending WHERE subject = ? AND period = ?`,
		[]any{subject, period}, &a.Requests, &a.Calls, &a.Tokens, &a.CostMicros)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return a, err
}

// held returns what is set aside for a subject in a period.
func (l ledger) held(ctx context.Context, t Reader, subject, period string) (a store.Amount, err error) {
	err = t.Row(ctx, `
SELECT CAST(COALESCE(SUM(calls), 0) AS BIGINT), CAST(COALESCE(SUM(tokens), 0) AS BIGINT), CAST(COALESCE(SUM(micros), 0) AS BIGINT) FROM reservations
WHERE subject = ?1 AND substr(day, 1, length(?2)) = ?2`, []any{subject, period}, &a.Calls, &a.Tokens, &a.CostMicros)
	return a, err
}

// count adds what a step has spent to the sums of its subjects. Other says that no record has it.
func (l ledger) count(ctx context.Context, t Tx, subjects []string, day string, a store.Amount, other bool) error {
	if a == (store.Amount{}) {
		return nil
	}
	var o store.Amount
	if other {
		o = a
	}
	for _, subject := range subjects {
		for _, period := range []string{day, monthOfDay(day)} {
			_, err := t.Exec(ctx, countQuery(l.t.runs.Dialect()),
				subject, period, a.Requests, a.Calls, a.Tokens, a.CostMicros, o.Calls, o.Tokens, o.CostMicros, int64(mostSpent))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// countQuery adds to the sums of a subject. ?10 is the highest sum that is kept.
func countQuery(d Dialect) string {
	sum := func(column, parameter string) string {
		return column + " = " + d.Least("spending."+column+" + "+parameter, "?10")
	}
	return `
INSERT INTO spending (subject, period, requests, calls, tokens, micros, other_calls, other_tokens, other_micros)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (subject, period) DO UPDATE SET requests = spending.requests + ?3,
	` + sum("calls", "?4") + `, ` + sum("tokens", "?5") + `, ` + sum("micros", "?6") + `,
	` + sum("other_calls", "?7") + `, ` + sum("other_tokens", "?8") + `, ` + sum("other_micros", "?9")
}

// mostSpent is the highest sum that is kept. Another amount fits into an int64 beside it.
const mostSpent = 1000 * limit.Most

// A holder makes reservations under one token.
type holder struct {
	l        ledger
	u        Updater
	token    string
	run      int64 // number of the run; 0: an account
	subjects []string

	mu       sync.Mutex
	reserved map[string]bool // paths with a reservation
}

// Reserve implements store.Reserver.
func (h *holder) Reserve(ctx context.Context, path string, most assay.Usage, bounds []limit.Bound) error {
	a, bounds := amountOf(most), limit.OfUsage(bounds)
	if a == (store.Amount{}) || len(bounds) == 0 {
		return nil
	}
	var refused *limit.Error
	err := h.u.Update(ctx, func(t Tx) (err error) {
		day, err := h.day(ctx, t, path)
		if err != nil {
			return err
		}
		if refused, err = h.refused(ctx, t, day, a, bounds); err != nil || refused != nil {
			return err
		}
		for _, s := range h.subjects {
			_, err := t.Exec(ctx, `
INSERT INTO reservations (subject, token, path, run, day, calls, tokens, micros) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (subject, token, path) DO UPDATE SET calls = reservations.calls + ?6, tokens = reservations.tokens + ?7,
	micros = reservations.micros + ?8`,
				s, h.token, path, h.run, day, a.Calls, a.Tokens, a.CostMicros)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && refused != nil {
		err = refused
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reserved == nil {
		h.reserved = map[string]bool{}
	}
	h.reserved[path] = true
	return nil
}

// day returns the day in which a step is counted: that of its first reservation, or today.
func (h *holder) day(ctx context.Context, t Tx, path string) (string, error) {
	day := dayOf(h.l.t.now())
	err := t.Row(ctx, `SELECT day FROM reservations WHERE subject = ? AND token = ? AND path = ?`, []any{limit.Tenant, h.token, path}, &day)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return day, err
}

// refused returns the first bound that the amount would exceed, or nil. It settles what dead processes
// left before it refuses.
func (h *holder) refused(ctx context.Context, t Tx, day string, a store.Amount, bounds []limit.Bound) (*limit.Error, error) {
	for again := true; ; again = false {
		refused, err := h.l.usageBound(ctx, t, day, a, bounds)
		if err != nil || refused == nil || !again {
			return refused, err
		}
		if n, err := h.l.reap(ctx, t); err != nil || n == 0 {
			return refused, err
		}
	}
}

// usageBound returns the first bound that another amount would exceed on a day, or nil.
func (l ledger) usageBound(ctx context.Context, t Tx, day string, need store.Amount, bounds []limit.Bound) (*limit.Error, error) {
	for _, b := range bounds {
		want, period := part(need, b.Measure), day
		if want == 0 {
			continue
		}
		if b.Measure.Period() == "month" {
			period = monthOfDay(day)
		}
		spent, err := l.spent(ctx, t, b.Subject, period)
		if err != nil {
			return nil, err
		}
		held, err := l.held(ctx, t, b.Subject, period)
		if err != nil {
			return nil, err
		}
		if s, h := part(spent, b.Measure), part(held, b.Measure); s+h+want > b.Most {
			return limit.NewError(b, s, h, want, l.t.now()), nil
		}
	}
	return nil, nil
}

// part returns the number of an amount that a measure of usage bounds.
func part(a store.Amount, m limit.Measure) int64 {
	switch m.Unit() {
	case "calls":
		return a.Calls
	case "tokens":
		return a.Tokens
	}
	return a.CostMicros
}

// Settle implements store.Reserver.
func (h *holder) Settle(ctx context.Context, path string, used assay.Usage) error {
	return wrap(h.u.Update(ctx, func(t Tx) error { return h.settle(ctx, t, path, used, true) }), "settle %s", path)
}

// settle ends the reservation of a step, if it has one, and counts what it has spent. Other says that
// the step gets no record.
func (h *holder) settle(ctx context.Context, t Tx, path string, used assay.Usage, other bool) error {
	day := dayOf(h.l.t.now())
	h.mu.Lock()
	reserved := h.reserved[path]
	h.mu.Unlock()
	if reserved { // the map keeps the path: the transaction may fail
		lost := false
		for _, s := range h.subjects {
			err := t.Row(ctx, `DELETE FROM reservations WHERE subject = ? AND token = ? AND path = ? RETURNING day`, []any{s, h.token, path}, &day)
			if lost = errors.Is(err, sql.ErrNoRows); err != nil && !lost {
				return err
			}
		}
		if lost && other { // counted in full already: another process took this one for dead
			return nil
		}
	}
	return h.l.count(ctx, t, h.subjects, day, amountOf(used), other)
}

// settleRest counts in full what is still reserved under the token.
func (h *holder) settleRest(ctx context.Context, t Tx) error {
	h.mu.Lock()
	none := len(h.reserved) == 0
	h.mu.Unlock()
	if none {
		return nil
	}
	return h.l.forfeit(ctx, t, h.token)
}

// forfeit counts the reservations under a token as spent and removes them.
func (l ledger) forfeit(ctx context.Context, t Tx, token string) error {
	type row struct {
		subject, day string
		a            store.Amount
	}
	var rows []row
	err := t.Each(ctx, `DELETE FROM reservations WHERE token = ? RETURNING subject, day, calls, tokens, micros`, []any{token}, func(scan func(...any) error) error {
		var r row
		err := scan(&r.subject, &r.day, &r.a.Calls, &r.a.Tokens, &r.a.CostMicros)
		rows = append(rows, r)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := l.count(ctx, t, []string{r.subject}, r.day, r.a, true); err != nil {
			return err
		}
	}
	return nil
}

// reap ends the admissions of dead processes and forfeits their reservations. It returns the number
// of tokens that were ended.
func (l ledger) reap(ctx context.Context, t Tx) (int, error) {
	dead, err := l.dead(ctx, t)
	if err != nil {
		return 0, err
	}
	for _, token := range dead {
		if err := l.forfeit(ctx, t, token); err != nil {
			return 0, err
		}
		if _, err := t.Exec(ctx, `DELETE FROM admissions WHERE token = ?`, token); err != nil {
			return 0, err
		}
	}
	return len(dead), nil
}

// dead returns the tokens of admissions and reservations whose process is dead, or whose run has
// another lease now.
func (l ledger) dead(ctx context.Context, t Reader) ([]string, error) {
	var dead []string
	add := func(scan func(...any) error) error {
		var token string
		var h leaseHolder
		if err := scan(append([]any{&token}, h.columns()...)...); err != nil {
			return err
		}
		if !l.t.live(h) {
			dead = append(dead, token)
		}
		return nil
	}
	err := t.Each(ctx, `SELECT DISTINCT token, token, owner, pid, machine, boot, expires FROM admissions`, nil, add)
	if err == nil {
		err = t.Each(ctx, `
SELECT DISTINCT r.token, p.token, p.owner, p.pid, p.machine, p.boot, p.expires
FROM reservations r LEFT JOIN progress p ON p.run = r.run AND p.token = r.token
WHERE r.run <> 0 OR NOT EXISTS (SELECT 1 FROM admissions a WHERE a.token = r.token)`, nil, add)
	}
	return dead, err
}

// Spending implements store.Ledger.
func (l ledger) Spending(ctx context.Context, subjects ...string) ([]store.Spending, error) {
	all, err := l.spending(ctx)
	if err != nil {
		return nil, wrap(err, "read the ledger")
	}
	out := []store.Spending{}
	for _, s := range all {
		if len(subjects) == 0 || slices.Contains(subjects, s.Subject) {
			out = append(out, *s)
		}
	}
	slices.SortFunc(out, func(a, b store.Spending) int { return cmp.Compare(a.Subject, b.Subject) })
	return out, nil
}

func (l ledger) spending(ctx context.Context) (map[string]*store.Spending, error) {
	if !l.t.readOnly {
		if err := l.reapDead(ctx); err != nil {
			return nil, err
		}
	}
	all := map[string]*store.Spending{}
	of := func(subject string) *store.Spending {
		if all[subject] == nil {
			all[subject] = &store.Spending{Subject: subject}
		}
		return all[subject]
	}
	day := dayOf(l.t.now())
	err := l.t.runs.View(ctx, func(v Reader) error {
		err := v.Each(ctx, `
SELECT subject, period, requests, calls, tokens, micros, other_calls, other_tokens, other_micros FROM spending WHERE period IN (?, ?)`,
			[]any{day, monthOfDay(day)}, func(scan func(...any) error) error {
				var subject, period string
				var a, o store.Amount
				if err := scan(&subject, &period, &a.Requests, &a.Calls, &a.Tokens, &a.CostMicros, &o.Calls, &o.Tokens, &o.CostMicros); err != nil {
					return err
				}
				if s := of(subject); period == day {
					s.Day, s.OtherDay = a, o
				} else {
					s.Month, s.OtherMonth = a, o
				}
				return nil
			})
		if err != nil {
			return err
		}
		err = v.Each(ctx, `SELECT subject, CAST(SUM(calls) AS BIGINT), CAST(SUM(tokens) AS BIGINT), CAST(SUM(micros) AS BIGINT) FROM reservations GROUP BY subject`, nil, func(scan func(...any) error) error {
			var subject string
			var a store.Amount
			if err := scan(&subject, &a.Calls, &a.Tokens, &a.CostMicros); err != nil {
				return err
			}
			of(subject).Held = a
			return nil
		})
		if err != nil {
			return err
		}
		return v.Each(ctx, `
SELECT a.subject, COUNT(*) FILTER (WHERE a.run <> ''), COUNT(*) FILTER (WHERE a.run <> '' AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = a.run))
FROM admissions a GROUP BY a.subject`,
			nil, func(scan func(...any) error) error {
				var subject string
				var runs, pending int64
				if err := scan(&subject, &runs, &pending); err != nil {
					return err
				}
				s := of(subject)
				s.Runs, s.Held.Requests = runs, pending
				return nil
			})
	})
	return all, err
}

// Forget implements store.Ledger. Names of periods are sorted like the periods.
func (l ledger) Forget(ctx context.Context, before time.Time) (int, error) {
	if now := l.t.now(); before.After(now) {
		before = now
	}
	var n int64
	u, err := l.t.RunsUpdater(ctx)
	if err == nil {
		err = u.Update(ctx, func(t Tx) (err error) {
			n, err = t.Exec(ctx, `DELETE FROM spending WHERE period < CASE length(period) WHEN 7 THEN ? ELSE ? END`, monthOf(before), dayOf(before))
			return err
		})
	}
	return int(n), wrap(err, "forget old sums of the ledger")
}

// reapDead settles what dead processes left, if there is anything.
func (l ledger) reapDead(ctx context.Context) error {
	var dead []string
	err := l.t.runs.View(ctx, func(s Reader) (err error) {
		dead, err = l.dead(ctx, s)
		return err
	})
	if err != nil || len(dead) == 0 {
		return err
	}
	u, err := l.t.RunsUpdater(ctx)
	if err != nil {
		return err
	}
	return u.Update(ctx, func(t Tx) error {
		_, err := l.reap(ctx, t)
		return err
	})
}

// An account implements store.Account.
type account struct {
	holder
	owner *owner

	cancel  context.CancelFunc // ends the renewal
	renewed chan struct{}      // closed when the renewal has ended
	once    sync.Once
	closed  error
}

func (a *account) expiry() int64 { return a.l.t.now().Add(a.l.t.opts.LeaseTime).UnixNano() }

// renew extends the admission for other machines until ctx is done or the admission has ended.
func (a *account) renew(ctx context.Context) {
	defer close(a.renewed)
	tick := time.NewTicker(max(a.l.t.opts.LeaseTime/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var n int64
		err := a.u.Update(ctx, func(t Tx) (err error) {
			n, err = t.Exec(ctx, `UPDATE admissions SET expires = ? WHERE token = ?`, a.expiry(), a.token)
			return err
		})
		if err == nil && n == 0 {
			return
		}
	}
}

// Close implements store.Account. Closing twice is allowed.
func (a *account) Close() error {
	a.once.Do(func() {
		a.cancel()
		<-a.renewed
		ctx := context.Background()
		a.closed = wrap(a.u.Update(ctx, func(t Tx) error {
			if err := a.settleRest(ctx, t); err != nil {
				return err
			}
			_, err := t.Exec(ctx, `DELETE FROM admissions WHERE token = ?`, a.token)
			return err
		}), "end an admission")
		a.owner.drop(a.token) // after a failure, the next process that needs the room settles it
	})
	return a.closed
}
