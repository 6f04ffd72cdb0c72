package ingest

import "sync"

// Progress is where an ingest is.
type Progress struct {
	Found   int    // files found so far, and folders that cannot be read
	Walked  bool   // all roots are walked: Found is final
	Done    int    // of them, stored, unchanged or skipped
	Skipped int    // of them, skipped
	Bytes   int64  // of the sources stored or unchanged
	Current string // URI of the file begun last

	// Committed are the documents (URIs) that became durable with this call:
	// put or removed, they survive a crash from here on.
	Committed []string

	// Indexing says that the documents are stored and the index is being written,
	// which is for who keeps one to say: Run does not.
	Indexing bool
}

// tracker hands out Progress, one call at a time.
type tracker struct {
	report func(Progress) // may be nil

	mu  sync.Mutex
	now Progress
}

// update changes the progress and reports it.
func (t *tracker) update(change func(*Progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.now)
	if t.report != nil {
		t.report(t.now)
	}
	t.now.Committed = nil
}
