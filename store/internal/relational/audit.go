package relational

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// AppendLeaf appends a leaf to the tree in the transaction. sequence is the next one.
func AppendLeaf(ctx context.Context, t Tx, sequence int64, header []byte, leaf [32]byte) error {
	_, err := t.Exec(ctx, `INSERT INTO log (sequence, header, leaf) VALUES (?, ?, ?)`, sequence, string(header), leaf[:])
	if err != nil {
		return err
	}
	hashes, err := tlog.StoredHashesForRecordHash(sequence-1, tlog.Hash(leaf), treeReader(func(position int64) (h tlog.Hash, err error) {
		var b []byte
		if err := t.Row(ctx, `SELECT hash FROM tree WHERE position = ?`, []any{position}, &b); err != nil {
			return h, missingHash(position, err)
		}
		return toHash(position, b)
	}))
	if err != nil {
		return err
	}
	first := tlog.StoredHashIndex(0, sequence-1)
	rows := make([][]any, len(hashes))
	for i, h := range hashes {
		rows[i] = []any{first + int64(i), h[:]}
	}
	_, err = t.ExecAll(ctx, `INSERT INTO tree (position, hash) VALUES (?, ?)`, rows)
	return err
}

// NextSequence returns the sequence of the next leaf and counts it.
func NextSequence(ctx context.Context, t Tx) (sequence int64, err error) {
	err = t.Row(ctx, `UPDATE store SET sequence = sequence + 1 RETURNING sequence`, nil, &sequence)
	return sequence, err
}

// appendAct appends an act to the log in the transaction.
func appendAct(ctx context.Context, t Tx, now time.Time, a store.Act) error {
	return appendItemAct(ctx, t, now, a, nil)
}

// checkKind rejects acts of callers with a kind that the store itself appends.
func checkKind(a store.Act) error {
	switch a.Kind {
	case store.KindRunBegun, store.KindRunEnded, store.KindRunSuspended, store.KindRunOffered, store.KindRunCancelled, store.KindReviewStored, store.KindShareCreated, store.KindShareRevoked, store.KindContentChanged, store.KindContentPruned,
		store.KindCollectionSet, store.KindSourceSet, store.KindSourceRemoved, store.KindErased,
		store.KindRunDeleted, store.KindRunExpired, store.KindRunErased:
		return invalid("acts of the kind %s are appended by the store", a.Kind)
	}
	return nil
}

// appendItemAct appends an act that changed an item of the registry. A nil item is none.
func appendItemAct(ctx context.Context, t Tx, now time.Time, a store.Act, item *journal.Item) error {
	sequence, err := NextSequence(ctx, t)
	if err != nil {
		return err
	}
	salt := journal.NewSalt()
	sealed, err := journal.SealAct(journal.Act{
		Sequence: sequence, Kind: a.Kind, Subject: a.Subject, Time: now, Actor: a.Actor, Reason: a.Reason, Detail: a.Detail, Item: item,
	}, salt)
	if err != nil {
		return err
	}
	if err := AppendLeaf(ctx, t, sequence, sealed.Header, sealed.Leaf); err != nil {
		return err
	}
	_, err = t.Exec(ctx, `INSERT INTO acts (sequence, kind, subject, salt, payload) VALUES (?, ?, ?, ?, ?)`,
		sequence, a.Kind, a.Subject, salt, string(sealed.Payload))
	return err
}

// A treeReader reads a stored hash by its position. It implements tlog.HashReader.
type treeReader func(position int64) (tlog.Hash, error)

// ReadHashes implements tlog.HashReader.
func (r treeReader) ReadHashes(positions []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(positions))
	for i, p := range positions {
		var err error
		if hashes[i], err = r(p); err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

func missingHash(position int64, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return damaged("hash %d of the audit log is missing", position)
	}
	return err
}

func toHash(position int64, b []byte) (h tlog.Hash, err error) {
	if len(b) != len(h) {
		return h, damaged("hash %d of the audit log has %d bytes", position, len(b))
	}
	return tlog.Hash(b), nil
}

// An auditLog is the audit log and the registry in a database with auditTables. It implements
// store.Audit; see registry for store.Registry.
type auditLog struct {
	d       Database
	updater func(context.Context) (Updater, error)
	now     func() time.Time
	collect func(context.Context) error // brings acts from elsewhere to the log; nil: there are none

	content Database // content.db of the tenant; nil: there is none
	// tenants compares the tenants with the registry; nil: the log is a tenant's.
	tenants func(ctx context.Context, r store.Registry, report func(sequence int64, object, format string, args ...any)) error

	maxOffers int
}

var _ store.Audit = auditLog{}

// Identity implements store.Audit.
func (l auditLog) Identity(ctx context.Context) (word string, err error) {
	err = l.d.Row(ctx, `SELECT tenant FROM store`, nil, &word)
	return word, wrap(err, "identity of the audit log")
}

// Append implements store.Audit.
func (l auditLog) Append(ctx context.Context, acts ...store.Act) error {
	for _, a := range acts {
		if err := checkKind(a); err != nil {
			return wrap(err, "append to the audit log")
		}
	}
	if err := l.gather(ctx); err != nil {
		return wrap(err, "append to the audit log")
	}
	u, err := l.updater(ctx)
	if err == nil {
		err = u.Update(ctx, func(t Tx) error {
			for _, a := range acts {
				if err := appendAct(ctx, t, l.now(), a); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return wrap(err, "append to the audit log")
}

func (l auditLog) gather(ctx context.Context) error {
	if l.collect == nil {
		return nil
	}
	return l.collect(ctx)
}

// Size implements store.Audit.
func (l auditLog) Size(ctx context.Context) (size int64, err error) {
	if err = l.gather(ctx); err == nil {
		err = l.d.Row(ctx, `SELECT sequence FROM store`, nil, &size)
	}
	return size, wrap(err, "size of the audit log")
}

const entriesQuery = `
SELECT l.sequence, l.header, l.leaf, COALESCE(a.payload, r.payload), COALESCE(a.salt, r.salt), COALESCE(runs.id, '')
FROM log l LEFT JOIN acts a ON a.sequence = l.sequence LEFT JOIN records r ON r.sequence = l.sequence
LEFT JOIN runs ON runs.number = r.run
WHERE l.sequence > ? AND l.sequence <= ? ORDER BY l.sequence`

// Entries implements store.Audit.
func (l auditLog) Entries(ctx context.Context, after, upTo int64) iter.Seq2[store.LogEntry, error] {
	return func(yield func(store.LogEntry, error) bool) {
		errBreak := errors.New("break")
		err := l.gather(ctx)
		if err == nil {
			err = l.d.View(ctx, func(s Reader) error {
				next := after + 1
				err := s.Each(ctx, entriesQuery, []any{after, upTo}, func(scan func(...any) error) error {
					e, err := scanEntry(scan)
					if err == nil && e.Sequence != next {
						err = damaged("entry %d is missing", next)
					}
					if err != nil {
						return err
					}
					next++
					if !yield(e, nil) {
						return errBreak
					}
					return nil
				})
				if err == nil && next <= upTo {
					err = damaged("entry %d is missing", next)
				}
				return err
			})
		}
		if err != nil && !errors.Is(err, errBreak) {
			yield(store.LogEntry{}, wrap(err, "read the audit log"))
		}
	}
}

func scanEntry(scan func(...any) error) (store.LogEntry, error) {
	var e store.LogEntry
	var leaf []byte
	var header string
	var payload sql.NullString
	if err := scan(&e.Sequence, &header, &leaf, &payload, &e.Salt, &e.Run); err != nil {
		return e, err
	}
	if len(leaf) != len(e.Leaf) {
		return e, damaged("leaf %d has %d bytes", e.Sequence, len(leaf))
	}
	e.Header, e.Leaf = []byte(header), [32]byte(leaf)
	if payload.Valid {
		e.Payload = []byte(payload.String)
	}
	return e, nil
}

// Hashes implements store.Audit.
func (l auditLog) Hashes(ctx context.Context, positions []int64) ([][32]byte, error) {
	hashes := make([][32]byte, len(positions))
	err := l.d.View(ctx, func(s Reader) error {
		for i, p := range positions {
			var b []byte
			if err := s.Row(ctx, `SELECT hash FROM tree WHERE position = ?`, []any{p}, &b); err != nil {
				return missingHash(p, err)
			}
			h, err := toHash(p, b)
			if err != nil {
				return err
			}
			hashes[i] = h
		}
		return nil
	})
	return hashes, wrap(err, "read the audit log")
}

// Erase implements store.Audit.
func (l auditLog) Erase(ctx context.Context, sequence int64, why store.Act) error {
	why.Kind, why.Subject = store.KindErased, strconv.FormatInt(sequence, 10)
	u, err := l.updater(ctx)
	if err == nil {
		err = u.Update(ctx, func(t Tx) error {
			held, err := erasable(ctx, t, sequence)
			if err != nil || !held {
				return err
			}
			if err := l.checkActHeld(ctx, t, sequence); err != nil {
				return err
			}
			if err := erasePayload(ctx, t, sequence); err != nil {
				return err
			}
			return appendAct(ctx, t, l.now(), why)
		})
	}
	return wrap(err, "erase entry %d of the audit log", sequence)
}

// checkActHeld returns an error if a hold covers the act.
func (l auditLog) checkActHeld(ctx context.Context, t Tx, sequence int64) error {
	holds, err := activeHolds(ctx, t, l.now())
	if err != nil || len(holds) == 0 {
		return err
	}
	var subject, payload string
	if err := t.Row(ctx, `SELECT subject, payload FROM acts WHERE sequence = ?`, []any{sequence}, &subject, &payload); err != nil {
		return err
	}
	covered, err := heldAct(ctx, t, holds, subject, payload)
	if err == nil && covered {
		err = fmt.Errorf("a hold keeps it: %w", assay.ErrForbidden)
	}
	return err
}

// erasable returns an error if the payload of an act must stay. held is false if it was erased.
func erasable(ctx context.Context, t Tx, sequence int64) (held bool, err error) {
	var kind, subject string
	var payload sql.NullString
	err = t.Row(ctx, `SELECT kind, subject, payload FROM acts WHERE sequence = ?`, []any{sequence}, &kind, &subject, &payload)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, assay.ErrNotFound
	case err != nil || !payload.Valid:
		return false, err
	case contentKinds[kind]:
		return false, invalid("content is checked against it; it names documents by hashes only")
	case runKinds[kind]:
		var stored bool
		if err := t.Row(ctx, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)`, []any{subject}, &stored); err != nil {
			return false, err
		}
		if stored {
			return false, invalid("the run %s is checked against it; erase the run", subject)
		}
	}
	var p struct{ Item *journal.Item }
	if err := decodeJSON("payload of the act", payload.String, &p); err != nil || p.Item == nil {
		return err == nil, err
	}
	var updated int64
	err = t.Row(ctx, `SELECT updated FROM registry WHERE kind = ? AND name = ?`, []any{p.Item.Kind, p.Item.Name}, &updated)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	if err == nil && updated == p.Item.Updated {
		err = invalid("%s %q is checked against it; delete or replace that first", p.Item.Kind, p.Item.Name)
	}
	return err == nil, err
}

// runKinds are the kinds of acts that a run's rows are checked against.
var runKinds = map[string]bool{
	store.KindRunBegun: true, store.KindRunEnded: true, store.KindRunSuspended: true, store.KindRunOffered: true, store.KindReviewStored: true,
	store.KindRunErased: true, store.KindShareCreated: true, store.KindShareRevoked: true,
}

// contentKinds are the kinds of acts that content.db is checked against.
var contentKinds = map[string]bool{
	store.KindContentChanged: true, store.KindContentPruned: true, store.KindCollectionSet: true,
	store.KindSourceSet: true, store.KindSourceRemoved: true,
}

// A contentAct is the act of one change of content. It waits in content.db until it is in the log.
type contentAct struct {
	Kind    string          `json:"kind"`
	Subject string          `json:"subject"`
	Detail  json.RawMessage `json:"detail"`
	Time    time.Time       `json:"time"`
}

// collectActs moves acts that wait in content.db to the log, each once, however often it is
// interrupted: runs.db counts the acts that it has.
func (t *Tenant) collectActs(ctx context.Context) error {
	if t.readOnly {
		return nil
	}
	for {
		moved, more, err := t.collectSome(ctx)
		if err != nil {
			return fmt.Errorf("collect acts on content: %w", err)
		}
		if !more || moved == 0 {
			return nil
		}
	}
}

// collectSome moves the first acts that wait. more means that there may be others.
func (t *Tenant) collectSome(ctx context.Context) (moved int, more bool, err error) {
	const most = 256
	var last, newest int64
	if err := t.content.Row(ctx, `SELECT COALESCE(MAX(number), 0) FROM waiting_acts`, nil, &newest); err != nil {
		return 0, false, err
	}
	if err := t.runs.Row(ctx, `SELECT moved FROM store`, nil, &last); err != nil || last >= newest {
		return 0, false, err
	}
	u, err := t.RunsUpdater(ctx)
	if err != nil {
		return 0, false, err
	}
	err = u.Update(ctx, func(x Tx) error {
		if err := x.Row(ctx, `SELECT moved FROM store`, nil, &last); err != nil {
			return err
		}
		var acts []contentAct
		err := t.content.View(ctx, func(s Reader) error {
			return s.Each(ctx, `SELECT number, act FROM waiting_acts WHERE number > ? ORDER BY number LIMIT ?`, []any{last, most}, func(scan func(...any) error) error {
				var number int64
				var text string
				if err := scan(&number, &text); err != nil {
					return err
				}
				var a contentAct
				if err := decodeJSON("act on content", text, &a); err != nil {
					return err
				}
				last, acts = number, append(acts, a)
				return nil
			})
		})
		if err != nil {
			return err
		}
		for _, a := range acts {
			if err := appendAct(ctx, x, a.Time, store.Act{Kind: a.Kind, Subject: a.Subject, Detail: a.Detail}); err != nil {
				return err
			}
		}
		moved = len(acts)
		_, err = x.Exec(ctx, `UPDATE store SET moved = ?`, last)
		return err
	})
	return moved, moved == most, err
}

// wait stores an act on content in the transaction that makes it.
func (w *writer) wait(ctx context.Context, t Tx, now time.Time, kind, subject string, detail any) error {
	data, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	act, err := json.Marshal(contentAct{Kind: kind, Subject: subject, Detail: data, Time: now.UTC()})
	if err != nil {
		return err
	}
	_, err = t.Insert(ctx, `INSERT INTO waiting_acts (act) VALUES (?)`, string(act))
	return err
}

// dropMoved removes the acts that have reached the log, unless the tenant is being copied. The caller
// calls unlock, if it is not nil, once the transaction has ended.
func (w *writer) dropMoved(ctx context.Context, t Tx) (unlock func() error, err error) {
	var first sql.NullInt64
	if err := t.Row(ctx, `SELECT MIN(number) FROM waiting_acts`, nil, &first); err != nil || !first.Valid {
		return nil, err
	}
	var moved int64
	if err := w.tenant.runs.Row(ctx, `SELECT moved FROM store`, nil, &moved); err != nil || moved < first.Int64 {
		return nil, err
	}
	unlock, ok, err := w.tenant.place.LockKept(ctx)
	if err != nil || !ok {
		return nil, err
	}
	_, err = t.Exec(ctx, `DELETE FROM waiting_acts WHERE number <= ?`, moved)
	return unlock, err
}
