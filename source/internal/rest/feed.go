package rest

import (
	"fmt"
	"time"

	"github.com/assay-rag/assay/source"
)

// A Feed makes the cursors of a list of items by time of modification, for services without a feed
// of changes.
//
// A cursor is the time of the latest item. Items of that time or before are old. An item that a
// service lists late is found by the next sweep.
type Feed struct {
	since     time.Time // of the cursor
	latest    time.Time
	done      time.Time // all items up to this time were yielded
	unordered bool      // the list is not in the order of time
}

// start is the cursor of a feed without items.
const start = "start"

// NewFeed returns a feed that continues after the cursor. The error is source.ErrCursor.
func NewFeed(name, cursor string) (*Feed, error) {
	if cursor == "" || cursor == start {
		return &Feed{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, cursor)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, source.ErrCursor)
	}
	return &Feed{since: t, latest: t, done: t}, nil
}

// Since returns a time before which all items are old, or the zero time. The margin covers the time
// zones in which services read times, and indexes that lag.
func (f *Feed) Since() time.Time {
	const margin = 26 * time.Hour
	if f.since.IsZero() {
		return f.since
	}
	return f.since.Add(-margin)
}

// Old reports whether an item was modified at or before the cursor. An item without a time is never
// old.
func (f *Feed) Old(modified time.Time) bool { return !modified.IsZero() && !modified.After(f.since) }

// Cursor returns the cursor of the next change: one that continues after all items before this one,
// or "" if there is none.
func (f *Feed) Cursor(modified time.Time) string {
	if modified.Before(f.latest) {
		f.unordered = true
	}
	if modified.After(f.latest) {
		f.done, f.latest = f.latest, modified
	}
	if f.unordered || f.done.IsZero() {
		return ""
	}
	return f.done.Format(time.RFC3339Nano)
}

// End returns the cursor after a complete list.
func (f *Feed) End() string {
	if f.latest.IsZero() {
		return start
	}
	return f.latest.Format(time.RFC3339Nano)
}

// EndBefore returns the cursor after a complete list, but none later than limit.
func (f *Feed) EndBefore(limit time.Time) string {
	end := f.latest
	if end.After(limit) {
		end = limit
	}
	if end.Before(f.since) {
		end = f.since
	}
	if end.IsZero() {
		return start
	}
	return end.UTC().Format(time.RFC3339Nano)
}
