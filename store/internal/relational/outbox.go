package relational

import (
	"context"
	"database/sql"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// Outbox implements store.Tenant.
func (t *Tenant) Outbox() store.Outbox { return outbox{t} }

// An outbox implements store.Outbox.
type outbox struct{ t *Tenant }

var _ store.Outbox = outbox{}

// makeBatch is the most acts of one transaction of Make.
const makeBatch = 256

// Make implements store.Outbox.
func (o outbox) Make(ctx context.Context, skip int64, fn func(store.LoggedAct) ([]store.Message, error)) (int, error) {
	all := 0
	err := o.t.collectActs(ctx)
	for more := true; more && err == nil; {
		var n int
		n, more, err = o.makeSome(ctx, skip, fn)
		all += n
	}
	return all, wrap(err, "make messages")
}

// makeSome makes the messages of the next acts. more means that there may be others.
func (o outbox) makeSome(ctx context.Context, skip int64, fn func(store.LoggedAct) ([]store.Message, error)) (made int, more bool, err error) {
	var position, newest int64
	if err := o.t.runs.Row(ctx, `SELECT (SELECT act FROM outbox_position), (SELECT COALESCE(MAX(sequence), 0) FROM acts)`, nil, &position, &newest); err != nil {
		return 0, false, err
	}
	if max(position, skip) >= newest {
		return 0, false, nil
	}
	err = o.update(ctx, func(t Tx) error {
		if err := t.Row(ctx, `SELECT act FROM outbox_position`, nil, &position); err != nil {
			return err
		}
		acts, err := actsAfter(ctx, t, max(position, skip))
		if err != nil || len(acts) == 0 {
			return err
		}
		more = len(acts) == makeBatch
		for _, a := range acts {
			messages, err := fn(a)
			if err != nil {
				return err
			}
			for _, m := range messages {
				n, err := o.insert(ctx, t, a, m)
				if err != nil {
					return err
				}
				made += n
			}
		}
		_, err = t.Exec(ctx, `UPDATE outbox_position SET act = ?`, acts[len(acts)-1].Sequence)
		return err
	})
	if err != nil {
		made = 0
	}
	return made, more, err
}

// actsAfter returns the first acts after a sequence.
func actsAfter(ctx context.Context, t Tx, after int64) ([]store.LoggedAct, error) {
	var acts []store.LoggedAct
	err := t.Each(ctx, `
SELECT l.header, l.leaf, a.payload, a.salt FROM acts a JOIN log l ON l.sequence = a.sequence
WHERE a.sequence > ? ORDER BY a.sequence LIMIT ?`, []any{after, makeBatch}, func(scan func(...any) error) error {
		var header string
		var leaf, salt []byte
		var payload sql.NullString
		if err := scan(&header, &leaf, &payload, &salt); err != nil {
			return err
		}
		if len(leaf) != len(assay.Record{}.Leaf) {
			return damaged("a leaf has %d bytes", len(leaf))
		}
		var text []byte
		if payload.Valid {
			text = []byte(payload.String)
		}
		a, err := journal.OpenAct([]byte(header), text, salt, [32]byte(leaf))
		if err != nil {
			return err
		}
		acts = append(acts, store.LoggedAct{Sequence: a.Sequence, Time: a.Time, Act: store.Act{
			Kind: a.Kind, Subject: a.Subject, Actor: a.Actor, Reason: a.Reason, Detail: a.Detail,
		}})
		return nil
	})
	return acts, err
}

// insert stores a message of an act and returns 1, or 0 if the act's message to that target exists.
func (o outbox) insert(ctx context.Context, t Tx, a store.LoggedAct, m store.Message) (int, error) {
	if m.ID == "" || m.Target == "" || !utf8.ValidString(m.ID) || !utf8.ValidString(m.Target) || !utf8.Valid(m.Body) {
		return 0, invalid("message %q to %q: its ID or target is empty, or it is not UTF-8", m.ID, m.Target)
	}
	now := o.t.now().UnixNano()
	n, err := t.Exec(ctx, `
INSERT INTO outbox (id, act, kind, target, body, made, attempts, due, error) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?6, '')
ON CONFLICT (act, target) DO NOTHING`, m.ID, a.Sequence, a.Kind, m.Target, string(m.Body), now)
	return int(n), err
}

func (o outbox) update(ctx context.Context, fn func(Tx) error) error {
	u, err := o.t.RunsUpdater(ctx)
	if err != nil {
		return err
	}
	return u.Update(ctx, fn)
}

const messageColumns = `id, act, kind, target, body, made, attempts, COALESCE(due, 0), error`

func (o outbox) messages(ctx context.Context, query string, args ...any) ([]store.Message, error) {
	var all []store.Message
	err := o.t.runs.View(ctx, func(s Reader) error {
		return s.Each(ctx, query, args, func(scan func(...any) error) error {
			var m store.Message
			var body string
			var made, due int64
			if err := scan(&m.ID, &m.Act, &m.Kind, &m.Target, &body, &made, &m.Attempts, &due, &m.Error); err != nil {
				return err
			}
			m.Body, m.Made, m.Due = []byte(body), time.Unix(0, made).UTC(), timeOf(due)
			all = append(all, m)
			return nil
		})
	})
	return all, err
}

// timeOf returns a stored time. 0 is none.
func timeOf(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}

// Due implements store.Outbox.
func (o outbox) Due(ctx context.Context, limit int) ([]store.Message, error) {
	all, err := o.messages(ctx, `SELECT `+messageColumns+` FROM outbox WHERE due <= ? ORDER BY attempts, act, number LIMIT ?`, o.t.now().UnixNano(), limit)
	return all, wrap(err, "list due messages")
}

// Next implements store.Outbox.
func (o outbox) Next(ctx context.Context) (time.Time, error) {
	var due int64
	err := o.t.runs.Row(ctx, `SELECT COALESCE(MIN(due), 0) FROM outbox WHERE due IS NOT NULL`, nil, &due)
	return timeOf(due), wrap(err, "next due message")
}

// Delivered implements store.Outbox.
func (o outbox) Delivered(ctx context.Context, id string) error {
	err := o.update(ctx, func(t Tx) error {
		var target string
		err := t.Row(ctx, `SELECT target FROM outbox WHERE id = ?`, []any{id}, &target)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `DELETE FROM outbox WHERE id = ?`, id); err != nil {
			return err
		}
		_, err = t.Exec(ctx, `
INSERT INTO outbox_targets (target, delivered, last) VALUES (?1, 1, ?2)
ON CONFLICT (target) DO UPDATE SET delivered = outbox_targets.delivered + 1, last = ?2, failures = 0`, target, o.t.now().UnixNano())
		return err
	})
	return wrap(err, "message %s", id)
}

// Failed implements store.Outbox.
func (o outbox) Failed(ctx context.Context, id, why string, next time.Time, wait time.Duration) error {
	var due any
	if !next.IsZero() {
		due = next.UnixNano()
	}
	err := o.update(ctx, func(t Tx) error {
		_, err := t.Exec(ctx, `UPDATE outbox SET attempts = attempts + 1, due = ?, error = ? WHERE id = ?`, due, why, id)
		if err != nil || wait <= 0 {
			return err
		}
		_, err = t.Exec(ctx, `
INSERT INTO outbox_targets (target, failures) SELECT target, 1 FROM outbox WHERE id = ?
ON CONFLICT (target) DO UPDATE SET failures = outbox_targets.failures + 1`, id)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, `
UPDATE outbox SET due = ?2 WHERE due < ?2 AND id <> ?1
AND target = (SELECT target FROM outbox WHERE id = ?1)`, id, o.t.now().Add(wait).UnixNano())
		return err
	})
	return wrap(err, "message %s", id)
}

// Dead implements store.Outbox.
func (o outbox) Dead(ctx context.Context) ([]store.Message, error) {
	all, err := o.messages(ctx, `SELECT `+messageColumns+` FROM outbox WHERE due IS NULL ORDER BY act, target`)
	return all, wrap(err, "list dead messages")
}

// Retry implements store.Outbox.
func (o outbox) Retry(ctx context.Context, ids ...string) (int, error) {
	const again = `UPDATE outbox SET made = ?1, due = ?1, attempts = 0, error = '' WHERE due IS NULL`
	now, all := o.t.now().UnixNano(), 0
	err := o.update(ctx, func(t Tx) error {
		if len(ids) == 0 {
			n, err := t.Exec(ctx, again, now)
			all = int(n)
			return err
		}
		for _, id := range ids {
			n, err := t.Exec(ctx, again+` AND id = ?2`, now, id)
			if err == nil && n == 0 {
				err = wrap(assay.ErrNotFound, "message %s", id)
			}
			if err != nil {
				return err
			}
			all++
		}
		return nil
	})
	if err != nil {
		return 0, wrap(err, "retry messages")
	}
	return all, nil
}

// Drop implements store.Outbox.
func (o outbox) Drop(ctx context.Context, target, why string) (int, error) {
	var n int64
	err := o.update(ctx, func(t Tx) (err error) {
		n, err = t.Exec(ctx, `UPDATE outbox SET due = NULL, error = ? WHERE target = ? AND due IS NOT NULL`, why, target)
		return err
	})
	return int(n), wrap(err, "messages to %s", target)
}

// expired selects the messages that Expire removes. ?1 is the time, ?2 the number.
const expired = `due IS NULL AND made < ?1 OR number IN (
SELECT number FROM (SELECT number, ROW_NUMBER() OVER (PARTITION BY target ORDER BY number DESC) AS newer FROM outbox) counted WHERE newer > ?2)`

// Expire implements store.Outbox.
func (o outbox) Expire(ctx context.Context, before time.Time, most int) (int, error) {
	args, n := []any{before.UnixNano(), most}, 0
	if err := o.t.runs.Row(ctx, `SELECT COUNT(*) FROM outbox WHERE `+expired, args, &n); err != nil || n == 0 {
		return 0, wrap(err, "expire messages")
	}
	err := o.update(ctx, func(t Tx) (err error) {
		n, err = removeMessages(ctx, t, expired, args...)
		return err
	})
	if err != nil {
		n = 0
	}
	return n, wrap(err, "expire messages")
}

// removeMessages removes and counts the messages for which a condition holds.
func removeMessages(ctx context.Context, t Tx, condition string, args ...any) (int, error) {
	_, err := t.Exec(ctx, `
INSERT INTO outbox_targets (target, removed) SELECT target, COUNT(*) FROM outbox WHERE `+condition+` GROUP BY target
ON CONFLICT (target) DO UPDATE SET removed = outbox_targets.removed + excluded.removed`, args...)
	if err != nil {
		return 0, err
	}
	n, err := t.Exec(ctx, `DELETE FROM outbox WHERE `+condition, args...)
	return int(n), err
}

// Forget implements store.Outbox.
func (o outbox) Forget(ctx context.Context, target string) error {
	err := o.update(ctx, func(t Tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM outbox WHERE target = ?`, target); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `DELETE FROM outbox_targets WHERE target = ?`, target)
		return err
	})
	return wrap(err, "messages to %s", target)
}

const targetsQuery = `
SELECT n.target, COUNT(o.due), COUNT(o.number) - COUNT(o.due),
	COALESCE(MAX(d.delivered), 0), COALESCE(MAX(d.last), 0), COALESCE(MAX(d.failures), 0), COALESCE(MAX(d.removed), 0)
FROM (SELECT target FROM outbox UNION SELECT target FROM outbox_targets) n
LEFT JOIN outbox o ON o.target = n.target LEFT JOIN outbox_targets d ON d.target = n.target
GROUP BY n.target ORDER BY n.target`

// Targets implements store.Outbox.
func (o outbox) Targets(ctx context.Context) ([]store.TargetCount, error) {
	var all []store.TargetCount
	err := o.t.runs.View(ctx, func(s Reader) error {
		return s.Each(ctx, targetsQuery, nil, func(scan func(...any) error) error {
			var c store.TargetCount
			var last int64
			if err := scan(&c.Target, &c.Waiting, &c.Dead, &c.Delivered, &last, &c.Failures, &c.Removed); err != nil {
				return err
			}
			c.Last = timeOf(last)
			all = append(all, c)
			return nil
		})
	})
	return all, wrap(err, "count messages")
}
