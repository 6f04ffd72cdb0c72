package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// Kinds of registry items that say how long data is kept.
const (
	HoldKind      = "hold"      // a Hold by its name
	RetentionKind = "retention" // a Retention by the kind of data
)

// The kinds of data that a retention can be set for.
const (
	RetainRuns     = "runs"     // runs with their journals and answers, which are deleted
	RetainJournals = "journals" // journals of failed runs, which are erased
	RetainVersions = "versions" // replaced and deleted versions of documents that no run cites
	RetainReviews  = "reviews"  // payloads of the acts on reviews
	RetainActs     = "acts"     // payloads of all other acts
)

// Retained lists the kinds of data that a retention can be set for.
var Retained = []string{RetainRuns, RetainJournals, RetainVersions, RetainReviews, RetainActs}

// A Retention is how long a kind of data is kept.
type Retention struct {
	Days int `json:"days"` // since it was made, or replaced
}

// MaxRetentionDays is the longest retention.
const MaxRetentionDays = 36_500

// Duration returns the retention as a duration.
func (r Retention) Duration() time.Duration {
	return time.Duration(min(max(r.Days, 0), MaxRetentionDays)) * 24 * time.Hour
}

// A Hold is a legal hold. The runs and documents that it covers cannot be erased, deleted or pruned,
// and no retention policy removes them. Exactly one of Run, Collection, User and All is set.
type Hold struct {
	Name       string     `json:"-"`
	Run        string     `json:"run,omitempty"`        // ID of a run
	Collection string     `json:"collection,omitempty"` // its documents, and the runs that may have searched it
	User       string     `json:"user,omitempty"`       // the runs that this user asked
	All        bool       `json:"all,omitempty"`        // everything of the tenant
	Reason     string     `json:"reason"`
	Until      *time.Time `json:"until,omitempty"` // the first moment at which it does not count any more; nil: it has no end
}

// Check returns assay.ErrInvalid unless the hold covers exactly one thing and has a reason.
func (h Hold) Check() error {
	n := 0
	for _, set := range []bool{h.Run != "", h.Collection != "", h.User != "", h.All} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return fmt.Errorf("hold %q: want exactly one of a run, a collection, a user and everything: %w", h.Name, assay.ErrInvalid)
	case strings.TrimSpace(h.Reason) == "":
		return fmt.Errorf("hold %q: a reason is missing: %w", h.Name, assay.ErrInvalid)
	}
	return nil
}

// Covers names what the hold covers: "run X", "collection X", "user X" or "everything".
func (h Hold) Covers() string {
	switch {
	case h.Run != "":
		return "run " + h.Run
	case h.Collection != "":
		return "collection " + h.Collection
	case h.User != "":
		return "user " + h.User
	}
	return "everything"
}

// Counts reports whether the hold counts at a time.
func (h Hold) Counts(now time.Time) bool { return h.Until == nil || now.Before(*h.Until) }

// Holds are the holds that count.
type Holds []Hold

// ReadHolds returns the holds among registry items that count at a time. An item that cannot be read
// holds everything.
func ReadHolds(items []RegistryItem, now time.Time) Holds {
	var holds Holds
	for _, item := range items {
		h := Hold{Name: item.Name}
		dec := json.NewDecoder(bytes.NewReader(item.Value))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&h); err != nil || h.Check() != nil {
			h = Hold{Name: item.Name, All: true, Reason: "it cannot be read, so it holds everything"}
		}
		if h.Counts(now) {
			holds = append(holds, h)
		}
	}
	return holds
}

// Run returns the error that says which hold covers a run, or nil. Without a request that names
// collections, the run may have searched every one.
func (holds Holds) Run(r assay.Run) error {
	var asked struct{ Collections []string }
	if err := json.Unmarshal(r.Request, &asked); err != nil {
		asked.Collections = nil
	}
	for _, h := range holds {
		searched := h.Collection != "" && (len(asked.Collections) == 0 || slices.Contains(asked.Collections, h.Collection))
		if h.All || searched || h.Run != "" && h.Run == r.ID || h.User != "" && h.User == r.Principal.User {
			return h.refusal()
		}
	}
	return nil
}

// Documents returns the error that says which hold covers the documents of a collection, or nil.
func (holds Holds) Documents(collection string) error {
	for _, h := range holds {
		if h.All || h.Collection != "" && h.Collection == collection {
			return h.refusal()
		}
	}
	return nil
}

// Anything returns the error that says which hold there is, or nil. A tenant with a hold cannot be
// deleted.
func (holds Holds) Anything() error {
	for _, h := range holds {
		return h.refusal()
	}
	return nil
}

func (h Hold) refusal() error {
	return fmt.Errorf("hold %q on %s keeps it (%s): %w", h.Name, h.Covers(), h.Reason, assay.ErrForbidden)
}
