package relational

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// Check implements store.Audit. Besides the rows it checks the integrity of the databases and that
// their schemas are those of this program. Not compared are data that only this program derives
// (vectors, the index), the progress of syncs, the leases of runs, feedback and
// labelled questions.
func (l auditLog) Check(ctx context.Context, found func(store.Finding) error) error {
	c := &auditChecker{log: l, found: found, state: newAuditState(l.maxOffers)}
	err := l.gather(ctx)
	if err == nil {
		err = l.inOneState(ctx, c)
	}
	if err == nil && l.tenants != nil && c.err == nil {
		err = l.tenants(ctx, registry{l}, c.report)
	}
	if err == nil {
		err = c.err
	}
	return wrap(err, "check the audit log")
}

// An auditChecker compares rows with the log.
type auditChecker struct {
	log   auditLog
	found func(store.Finding) error
	err   error // of found

	runs    Reader
	content Reader // nil: there is none
	state   *auditState
	moved   int64 // acts on content in the log, as runs.db counts them
}

// report calls found, until it fails.
func (c *auditChecker) report(sequence int64, object, format string, args ...any) {
	if c.err == nil {
		c.err = c.found(store.Finding{Sequence: sequence, Object: object, Problem: fmt.Sprintf(format, args...)})
	}
}

// inOneState checks a state of both databases in which the log has every act on content that is not
// waiting. That of the content is taken first. It is taken again if acts were moved to the log and
// removed in between.
func (l auditLog) inOneState(ctx context.Context, c *auditChecker) error {
	if l.content == nil {
		return l.d.View(ctx, func(s Reader) error {
			c.runs = s
			return c.check(ctx)
		})
	}
	errAgain := errors.New("again")
	const most = 1000
	for i := 0; ; i++ {
		err := l.content.View(ctx, func(cs Reader) error {
			var newest int64
			err := cs.Row(ctx, `SELECT `+l.content.Dialect().Newest("waiting_acts"), nil, &newest)
			if err != nil {
				return err
			}
			return l.d.View(ctx, func(s Reader) error {
				if err := s.Row(ctx, `SELECT moved FROM store`, nil, &c.moved); err != nil {
					return err
				}
				if c.moved > newest && i < most {
					return errAgain
				}
				if c.moved > newest {
					c.report(0, "log", "it counts %d acts on content, of which there were %d", c.moved, newest)
				}
				c.runs, c.content = s, cs
				return c.check(ctx)
			})
		})
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// check runs all checks in the snapshots.
func (c *auditChecker) check(ctx context.Context) error {
	if err := c.integrity(ctx, c.log.d, c.runs); err != nil {
		return err
	}
	steps := []func(context.Context) error{c.replay, c.counters, c.checkRuns, c.checkReviews, c.checkShares, c.checkOffers, c.checkPins, c.checkValues, c.checkRegistry}
	if c.content != nil {
		if err := c.integrity(ctx, c.log.content, c.content); err != nil {
			return err
		}
		steps = append(steps, c.checkCollections, c.checkDocuments, c.checkVersions, c.checkFiles, c.checkSources)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil || c.err != nil {
			return errors.Join(err, c.err)
		}
	}
	return nil
}

// integrity checks what the database itself can check.
func (c *auditChecker) integrity(ctx context.Context, d Database, s Reader) error {
	return d.Integrity(ctx, s, func(format string, args ...any) { c.report(0, d.Name(), format, args...) })
}

const replayQuery = `
SELECT l.sequence, l.header, l.leaf, a.sequence IS NOT NULL, r.sequence IS NOT NULL, COALESCE(a.kind, ''), COALESCE(a.subject, ''), a.payload, a.salt
FROM log l LEFT JOIN acts a ON a.sequence = l.sequence LEFT JOIN records r ON r.sequence = l.sequence
ORDER BY l.sequence`

// A replayRow is a row of replayQuery.
type replayRow struct {
	sequence      int64
	header        string
	leaf, salt    []byte
	act, record   bool
	kind, subject string
	payload       sql.NullString
}

// replay builds the state from the log and the acts that wait.
func (c *auditChecker) replay(ctx context.Context) error {
	next := int64(1)
	err := c.runs.Each(ctx, replayQuery, nil, func(scan func(...any) error) error {
		var r replayRow
		if err := scan(&r.sequence, &r.header, &r.leaf, &r.act, &r.record, &r.kind, &r.subject, &r.payload, &r.salt); err != nil {
			return err
		}
		for ; next < r.sequence; next++ {
			c.report(next, "entry", "it is missing")
		}
		next = r.sequence + 1
		if err := c.replayRow(r); err != nil {
			c.report(r.sequence, "entry", "%v", err)
		}
		return c.err
	})
	if err != nil {
		return err
	}
	for _, a := range c.state.empty {
		if !c.state.isErased(a) {
			c.report(a.Sequence, "act "+a.Kind, "its payload was removed without an act that says so")
		}
	}
	if c.content == nil {
		return nil
	}
	return c.content.Each(ctx, `SELECT act FROM waiting_acts WHERE number > ? ORDER BY number`, []any{c.moved}, func(scan func(...any) error) error {
		var text string
		var a contentAct
		if err := scan(&text); err != nil {
			return err
		}
		if err := decodeJSON("act on content", text, &a); err != nil {
			return err
		}
		return c.state.act(journal.Act{Kind: a.Kind, Subject: a.Subject, Time: a.Time, Detail: a.Detail}, true)
	})
}

func (c *auditChecker) replayRow(r replayRow) error {
	if len(r.leaf) != tlog.HashSize {
		return damaged("its leaf has %d bytes", len(r.leaf))
	}
	h, err := journal.OpenHeader([]byte(r.header), [32]byte(r.leaf))
	if err != nil {
		return err
	}
	switch {
	case h.Sequence != r.sequence:
		return damaged("its header is of entry %d", h.Sequence)
	case h.Act == "" && r.act:
		return damaged("it is a record and is stored as an act too")
	case h.Act == "":
		return c.state.record(h)
	case !r.act:
		return damaged("it is an act, and its payload is not stored")
	case r.record:
		return damaged("it is an act and is stored as a record too")
	case r.kind != h.Act || r.subject != h.Subject:
		return damaged("it is the act %s on %q and stored as %s on %q", h.Act, h.Subject, r.kind, r.subject)
	}
	var payload []byte
	if r.payload.Valid {
		payload = []byte(r.payload.String)
	} else if r.salt != nil {
		return damaged("its payload is not stored, but its salt is")
	}
	a, err := journal.OpenAct([]byte(r.header), payload, r.salt, [32]byte(r.leaf))
	if err != nil {
		return err
	}
	return c.state.act(a, r.payload.Valid)
}

// counters checks what the store row counts and that no table has further rows.
func (c *auditChecker) counters(ctx context.Context) error {
	var rows, sequence, registry, entries, acts, records, hashes int64
	err := c.runs.Row(ctx, `
SELECT (SELECT count(*) FROM store), sequence, registry, (SELECT count(*) FROM log), (SELECT count(*) FROM acts),
	(SELECT count(*) FROM records), (SELECT count(*) FROM tree) FROM store`, nil, &rows, &sequence, &registry, &entries, &acts, &records, &hashes)
	if errors.Is(err, sql.ErrNoRows) {
		return damaged("runs.db has lost its first row")
	}
	if err != nil {
		return err
	}
	expect := func(what string, got, want int64) {
		if got != want {
			c.report(0, "log", "%s: %d, want %d", what, got, want)
		}
	}
	expect("entries", entries, sequence)
	expect("acts", acts, c.state.acts)
	expect("hashes of the tree", hashes, tlog.StoredHashCount(entries))
	steps := int64(0)
	for _, r := range c.state.runs {
		if !r.deleted {
			steps += int64(r.steps)
		}
	}
	expect("records", records, steps)
	if c.content != nil {
		waiting := int64(0)
		if err := c.content.Row(ctx, `SELECT count(*) FROM waiting_acts WHERE number > ?`, []any{c.moved}, &waiting); err != nil {
			return err
		}
		expect("acts on content", c.moved+waiting, c.state.contentActs)
	}
	expect("changes of the registry", registry, c.state.changes)
	return nil
}

// checkRegistry compares the registry with the last act on each item.
func (c *auditChecker) checkRegistry(ctx context.Context) error {
	seen := map[itemName]bool{}
	err := c.runs.Each(ctx, `SELECT kind, name, value, updated FROM registry`, nil, func(scan func(...any) error) error {
		var name itemName
		var value string
		var updated int64
		if err := scan(&name.kind, &name.name, &value, &updated); err != nil {
			return err
		}
		seen[name] = true
		want, known := c.state.items[name]
		switch {
		case !known:
			c.report(0, name.String(), "it is in the registry, but no act in the log set it")
		case hashOf([]byte(value)) != want.Value:
			c.report(want.sequence, name.String(), "its value was altered")
		case updated != want.Updated:
			c.report(want.sequence, name.String(), "its time was altered")
		}
		return nil
	})
	for name, want := range c.state.items {
		if !seen[name] {
			c.report(want.sequence, name.String(), "it is not in the registry, and no act deleted it")
		}
	}
	return err
}

func (n itemName) String() string { return fmt.Sprintf("%s %q", n.kind, n.name) }

// isDamage reports whether err is about the stored data rather than about reading it.
func isDamage(err error) bool { return errors.Is(err, assay.ErrDamaged) }
