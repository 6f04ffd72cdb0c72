package relational

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// eraseRunRows are the statements that remove what other tables hold of a run's text. ?1 is the
// number of the run.
var eraseRunRows = []string{
	`DELETE FROM offers WHERE run = ?1`,
	`DELETE FROM promises WHERE run = ?1`,
	`DELETE FROM reviews WHERE run = ?1`,
	`DELETE FROM shares WHERE run = ?1`,
	`DELETE FROM feedback WHERE run = ?1`,
	`DELETE FROM questions WHERE run = (SELECT id FROM runs WHERE number = ?1)`,
	`DELETE FROM pins WHERE run = ?1`,
	`DELETE FROM value_uses WHERE run = ?1`,
	`DELETE FROM reviews WHERE run = ?1`,
	`UPDATE records SET salt = NULL, payload = NULL WHERE run = ?1`,
	`UPDATE runs SET question = '', request = NULL, answer = NULL, error = '' WHERE number = ?1`,
}

// Erase implements store.Runs.
func (r runs) Erase(ctx context.Context, id string, why store.Act) error {
	u, err := r.t.RunsUpdater(ctx)
	if err == nil {
		err = u.Update(ctx, func(t Tx) error { return r.erase(ctx, t, id, why) })
	}
	return wrap(err, "erase run %s", id)
}

func (r runs) erase(ctx context.Context, t Tx, id string, why store.Act) error {
	why.Kind = store.KindRunErased
	number, state, err := r.free(ctx, t, id)
	if err != nil || state == assay.RunErased {
		return err
	}
	if err := r.t.notInReview(ctx, t, number); err != nil {
		return err
	}
	if err := r.checkHeld(ctx, t, id); err != nil {
		return err
	}
	own, err := ownValues(ctx, t, number)
	if err != nil {
		return err
	}
	for _, query := range eraseRunRows {
		if _, err := t.Exec(ctx, query, number); err != nil {
			return err
		}
	}
	if err := deleteValues(ctx, t, own); err != nil {
		return err
	}
	principal, err := erasedPrincipal(ctx, t, number)
	if err != nil {
		return err
	}
	if _, err := t.Exec(ctx, `UPDATE runs SET principal = ? WHERE number = ?`, principal, number); err != nil {
		return err
	}
	_, err = t.Exec(ctx, `
UPDATE progress SET state = ?, updated = ?, token = NULL, owner = NULL, pid = NULL, machine = NULL, boot = NULL, expires = NULL
WHERE run = ?`, string(assay.RunErased), r.t.now().UnixNano(), number)
	if err != nil {
		return err
	}
	why.Detail = nil
	var left runErased
	if err := t.Row(ctx, `SELECT created FROM runs WHERE number = ?`, []any{number}, &left.Created); err != nil {
		return err
	}
	return eraseAbout(ctx, t, r.t.now(), id, why, left)
}

// runErased is the detail of run.erased, run.deleted and run.expired. It has no hash of the user, who
// could be guessed from it after the run is deleted.
type runErased struct {
	Acts    []int64 `json:"acts"`              // sequences of the acts whose payload was erased
	Created int64   `json:"created,omitempty"` // of the run, as in runBegun
}

// erasedPrincipal returns the principal of an erased run: its user alone, who may still list it.
func erasedPrincipal(ctx context.Context, t Tx, number int64) (string, error) {
	var text string
	if err := t.Row(ctx, `SELECT principal FROM runs WHERE number = ?`, []any{number}, &text); err != nil {
		return "", err
	}
	var p assay.Principal
	if err := decodeJSON("principal", text, &p); err != nil {
		return "", err
	}
	data, err := json.Marshal(assay.Principal{User: p.User})
	return string(data), err
}

// aboutRun selects the acts about a run whose payloads go with it. Those that say why stay.
const aboutRun = `
SELECT sequence FROM acts WHERE subject = ? AND payload IS NOT NULL AND kind NOT IN ('run.erased', 'run.deleted', 'run.expired')
ORDER BY sequence`

// eraseAbout erases the payloads of the acts about a run and appends why, which lists them.
func eraseAbout(ctx context.Context, t Tx, now time.Time, run string, why store.Act, erased runErased) error {
	erased.Acts = []int64{}
	err := t.Each(ctx, aboutRun, []any{run},
		func(scan func(...any) error) error {
			var sequence int64
			err := scan(&sequence)
			erased.Acts = append(erased.Acts, sequence)
			return err
		})
	if err != nil {
		return err
	}
	for _, sequence := range erased.Acts {
		if err := erasePayload(ctx, t, sequence); err != nil {
			return err
		}
	}
	why.Subject = run
	if why.Detail == nil {
		if why.Detail, err = json.Marshal(erased); err != nil {
			return err
		}
	}
	return appendAct(ctx, t, now, why)
}

// erasePayload erases the payload of an act, and the messages about it that were not delivered yet.
func erasePayload(ctx context.Context, t Tx, sequence int64) error {
	if _, err := removeMessages(ctx, t, `act = ?1`, sequence); err != nil {
		return err
	}
	_, err := t.Exec(ctx, `UPDATE acts SET salt = NULL, payload = NULL WHERE sequence = ?`, sequence)
	return err
}

// ownValues returns the long values that no other run uses.
func ownValues(ctx context.Context, t Tx, number int64) (own []int64, err error) {
	err = t.Each(ctx, `
SELECT u.value FROM value_uses u WHERE u.run = ?1
AND NOT EXISTS (SELECT 1 FROM value_uses o WHERE o.value = u.value AND o.run <> ?1)`,
		[]any{number}, func(scan func(...any) error) error {
			var value int64
			err := scan(&value)
			own = append(own, value)
			return err
		})
	return own, err
}

func deleteValues(ctx context.Context, t Tx, values []int64) error {
	for _, value := range values {
		if _, err := t.Exec(ctx, `DELETE FROM long_values WHERE number = ?`, value); err != nil {
			return err
		}
	}
	return nil
}

// activeHolds returns the holds that count now.
func activeHolds(ctx context.Context, r Reader, now time.Time) (store.Holds, error) {
	var items []store.RegistryItem
	err := r.Each(ctx, `SELECT name, value FROM registry WHERE kind = ?`, []any{store.HoldKind}, func(scan func(...any) error) error {
		var item store.RegistryItem
		var value string
		err := scan(&item.Name, &value)
		item.Value = json.RawMessage(value)
		items = append(items, item)
		return err
	})
	return store.ReadHolds(items, now), err
}

// checkHeld returns an error if a hold covers the run.
func (r runs) checkHeld(ctx context.Context, t Tx, id string) error {
	holds, err := activeHolds(ctx, t, r.t.now())
	if err != nil || len(holds) == 0 {
		return err
	}
	var run assay.Run
	var h leaseHolder
	if err := scanRun(func(dest ...any) error { return t.Row(ctx, runQuery, []any{id}, dest...) }, &run, &h); err != nil {
		return err
	}
	return holds.Run(run)
}

// keptActs are the beginnings of the kinds of act whose payload EraseActs does not erase: they say
// what was erased and why, and what was kept.
var keptActs = []string{
	store.KindRunErased, store.KindRunDeleted, store.KindRunExpired, store.KindErased,
	"hold.", "retention.", "tenant.", "backup.", "checkpoint.",
}

// eraseBatch is how many acts are read in one transaction.
const eraseBatch = 1000

// EraseActs implements store.Audit.
func (l auditLog) EraseActs(ctx context.Context, which store.ActFilter, why store.Act) (int, error) {
	n, after := 0, int64(0)
	for {
		var erased, last int64
		u, err := l.updater(ctx)
		if err == nil {
			err = u.Update(ctx, func(t Tx) (err error) {
				erased, last, err = l.eraseSome(ctx, t, which, why, after)
				return err
			})
		}
		if err != nil {
			return n, wrap(err, "erase acts")
		}
		n += int(erased)
		if last == 0 {
			return n, nil
		}
		after = last
	}
}

const oldActsQuery = `
SELECT a.sequence, a.kind, a.subject, l.header, a.payload FROM acts a JOIN log l ON l.sequence = a.sequence
WHERE a.sequence > ? AND a.payload IS NOT NULL ORDER BY a.sequence LIMIT ?`

// eraseSome erases those of the next acts that the filter selects. last is 0 if there are no more.
func (l auditLog) eraseSome(ctx context.Context, t Tx, which store.ActFilter, why store.Act, after int64) (erased, last int64, err error) {
	holds, err := activeHolds(ctx, t, l.now())
	if err != nil {
		return 0, 0, err
	}
	var selected []int64
	read := 0
	err = t.Each(ctx, oldActsQuery, []any{after, eraseBatch}, func(scan func(...any) error) error {
		var sequence int64
		var kind, subject, header, payload string
		if err := scan(&sequence, &kind, &subject, &header, &payload); err != nil {
			return err
		}
		read, last = read+1, sequence
		var head struct{ Time time.Time }
		if err := decodeJSON(fmt.Sprintf("header of entry %d", sequence), header, &head); err != nil {
			return err
		}
		if !selects(which, kind, head.Time) {
			return nil
		}
		held, err := heldAct(ctx, t, holds, subject, payload)
		if err == nil && !held {
			selected = append(selected, sequence)
		}
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	if read < eraseBatch {
		last = 0
	}
	for _, sequence := range selected {
		_, err := erasable(ctx, t, sequence)
		if errors.Is(err, assay.ErrInvalid) {
			continue // something is checked against it
		}
		if err != nil {
			return 0, 0, err
		}
		if erased++; which.Dry {
			continue
		}
		if err := erasePayload(ctx, t, sequence); err != nil {
			return 0, 0, err
		}
		why.Kind, why.Subject = store.KindErased, strconv.FormatInt(sequence, 10)
		if err := appendAct(ctx, t, l.now(), why); err != nil {
			return 0, 0, err
		}
	}
	return erased, last, nil
}

// selects reports whether a filter selects an act.
func selects(which store.ActFilter, kind string, at time.Time) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(kind, prefix) }
	wanted := len(which.Kinds) == 0 || slices.ContainsFunc(which.Kinds, begins)
	return wanted && at.Before(which.Before) && !slices.ContainsFunc(keptActs, begins) && !slices.ContainsFunc(which.Except, begins)
}

// heldAct reports whether a hold covers an act: it is about a held run, or its actor is the user of a
// hold. A hold on a collection covers the acts on content.
func heldAct(ctx context.Context, t Tx, holds store.Holds, subject, payload string) (bool, error) {
	if len(holds) == 0 {
		return false, nil
	}
	var p struct{ Actor assay.Principal }
	if err := decodeJSON("payload of an act", payload, &p); err != nil {
		return false, err
	}
	for _, h := range holds {
		about := subject != "" && (h.Collection == subject || h.Run == subject)
		if h.All || about || h.User != "" && h.User == p.Actor.User {
			return true, nil
		}
	}
	var run assay.Run
	var holder leaseHolder
	err := scanRun(func(dest ...any) error { return t.Row(ctx, runQuery, []any{subject}, dest...) }, &run, &holder)
	if errors.Is(err, sql.ErrNoRows) { // it is about something else, or the run was deleted
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return holds.Run(run) != nil, nil
}

// openErased returns a record of an erased run: what its header holds.
func (j *journalReader) openErased(row recordRow) (assay.Record, error) {
	if row.payload != nil || row.salt != nil {
		return assay.Record{}, damaged("its run is erased, but it has a payload")
	}
	return journal.OpenErased(row.header, [32]byte(row.leaf))
}
