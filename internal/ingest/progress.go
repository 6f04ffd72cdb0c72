package ingest

import "sync"

// Progress is the progress of an ingest.
type Progress struct {
	Found   int    `json:"found"`             // files found so far, and folders that cannot be read
	Walked  bool   `json:"walked"`            // all roots are walked, so Found is final
	Done    int    `json:"done"`              // files stored, unchanged or skipped
	Skipped int    `json:"skipped"`           // files skipped
	Bytes   int64  `json:"bytes"`             // of the sources stored or unchanged
	Current string `json:"current,omitempty"` // URI of the file started last

	// FoundBytes and DoneBytes are the sizes of the files found and done, as far as they are known
	// before reading.
	FoundBytes int64 `json:"found_bytes"`
	DoneBytes  int64 `json:"done_bytes"`

	// Committed are the URIs of the documents that were put or removed durably since the last call.
	Committed []string `json:"committed,omitempty"`

	// Indexing means that the documents are stored and the index is being written. It is set by
	// callers of Run that maintain an index, not by Run.
	Indexing bool `json:"indexing,omitempty"`
}

// A tracker reports Progress, one call at a time.
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
