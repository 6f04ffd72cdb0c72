package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// An AuditFilter selects entries of the audit log. Zero fields select all.
type AuditFilter struct {
	Kind    string    // of the act, or its beginning with a dot at the end ("run."); "record" selects the steps of runs
	User    string    // who acted
	Subject string    // object of the act: a run, a collection, a policy
	Since   time.Time // then or later
	Until   time.Time // before
	Records bool      // steps of runs too; otherwise they are left out unless Kind is "record"

	Before int64 // entries before this sequence; 0: from the last
	Limit  int   // 1 to MaxAuditEntries
}

// selects reports whether an entry is wanted.
func (f AuditFilter) selects(e AuditEntry) bool {
	switch {
	case e.Kind == "record" && f.Kind != "record" && !f.Records:
		return false
	case f.Kind != "" && f.Kind != e.Kind && !(strings.HasSuffix(f.Kind, ".") && strings.HasPrefix(e.Kind, f.Kind)):
		return false
	case f.User != "" && (e.Actor == nil || e.Actor.User != f.User):
		return false
	case f.Subject != "" && f.Subject != e.Subject && f.Subject != e.Run:
		return false
	}
	return (f.Since.IsZero() || !e.Time.Before(f.Since)) && (f.Until.IsZero() || e.Time.Before(f.Until))
}

// maxScanned is the most entries that one call of AuditSearch reads.
const maxScanned = 100_000

// AuditSearch returns entries of the tenant's audit log, newest first, and the sequence before which the
// next part begins; 0: there are no more. A part may be empty and not the last, because one call reads
// 100,000 entries at most.
func (s *Session) AuditSearch(ctx context.Context, f AuditFilter) (found []AuditEntry, next int64, err error) {
	_, err = call(ctx, s, "AuditSearch", func(c *sessionCall) (_ struct{}, err error) {
		if f.Before < 0 || f.Limit < 1 || f.Limit > MaxAuditEntries {
			return struct{}{}, fmt.Errorf("entries before %d, at most %d: want a sequence and 1 to %d: %w", f.Before, f.Limit, MaxAuditEntries, assay.ErrInvalid)
		}
		found, next, err = c.engine.findActs(ctx, f)
		return struct{}{}, err
	})
	return found, next, err
}

// findActs reads the log backwards in blocks.
func (e *Engine) findActs(ctx context.Context, f AuditFilter) ([]AuditEntry, int64, error) {
	const block = 1000
	log := e.tenant.Audit()
	size, err := log.Size(ctx)
	if err != nil {
		return nil, 0, err
	}
	found, last := []AuditEntry{}, size
	if f.Before > 0 {
		last = min(size, f.Before-1)
	}
	for scanned := 0; last > 0; scanned += block {
		if scanned >= maxScanned {
			return found, last + 1, nil
		}
		first := max(0, last-block)
		var entries []AuditEntry
		for stored, err := range log.Entries(ctx, first, last) {
			if err != nil {
				return nil, 0, err
			}
			entry, err := auditEntry(stored)
			if err != nil {
				return nil, 0, fmt.Errorf("entry %d: %w", stored.Sequence, err)
			}
			entries = append(entries, entry)
		}
		for i := len(entries) - 1; i >= 0; i-- {
			if !f.selects(entries[i]) {
				continue
			}
			if len(found) == f.Limit {
				return found, entries[i].Sequence + 1, nil
			}
			found = append(found, entries[i])
		}
		last = first
	}
	return found, 0, nil
}
