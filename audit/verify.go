package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// Kinds of acts that this package appends.
const (
	KindKeyAdded   = "audit.key_added"    // the first key of a log
	KindKeyRotated = "audit.key_rotated"  // announces a key; the next checkpoint is signed by both
	KindKeyLost    = "audit.key_replaced" // a key that the one before did not sign
	KindPublished  = "checkpoint.published"
	KindWitnessed  = "checkpoint.witnessed"
)

// keyChange is the detail of an act on keys.
type keyChange struct {
	Key      string `json:"key"`                // verifier key
	Replaces string `json:"replaces,omitempty"` // verifier key
}

// A Log yields entries, as store.Audit and Export do.
type Log interface {
	Entries(ctx context.Context, after, upTo int64) iter.Seq2[store.LogEntry, error]
}

// An Input is what Verify checks.
type Input struct {
	Log    Log
	Origin string
	Size   int64 // entries of the log

	// Hashes reads the stored hashes of the tree, which are compared with those of the entries. Nil:
	// there are none.
	Hashes tlog.HashReader

	// Notes are signed checkpoints. Those of other logs are findings.
	Notes [][]byte

	// Keys are the verifier keys that the reader trusts. A key that the log announces under a
	// checkpoint of a trusted key takes the place of that key in later checkpoints.
	Keys []string

	// NoPayloads says that the log was exported without payloads.
	NoPayloads bool

	// grown returns the number of entries by now, if the log may grow and payloads may be erased
	// while it is read. Nil: it is immutable.
	grown func(context.Context) (int64, error)
}

// A Report is the result of Verify.
type Report struct {
	Origin      string          `json:"origin"`
	Size        int64           `json:"size"`
	Root        tlog.Hash       `json:"root"`        // over all entries
	Erased      int64           `json:"erased"`      // entries whose payload was erased, with an act that says so
	Checkpoints []Checkpoint    `json:"checkpoints"` // that match, by size
	Findings    []store.Finding `json:"findings"`
}

// Covered returns the number of entries under the last checkpoint that matches.
func (r Report) Covered() int64 {
	if len(r.Checkpoints) == 0 {
		return 0
	}
	return r.Checkpoints[len(r.Checkpoints)-1].Size
}

// Verify checks the entries of a log with each other, with the stored hashes and with checkpoints.
// Differences are findings of the report. An error means that the log could not be read.
//
// An alteration that leaves a hash behind is found at its entry. One by somebody who has computed
// all hashes again is found at the first checkpoint after it, and the finding names the entries
// between the last checkpoint that matches and that one.
func Verify(ctx context.Context, in Input) (Report, error) {
	c, err := newChecker(in)
	if err != nil {
		return Report{}, err
	}
	return c.run(ctx)
}

func newChecker(in Input) (*checker, error) {
	c := &checker{in: in, report: Report{Origin: in.Origin, Size: in.Size, Findings: []store.Finding{}, Checkpoints: []Checkpoint{}}}
	return c, c.open()
}

// run checks the whole log.
func (c *checker) run(ctx context.Context) (Report, error) {
	if err := c.scan(ctx, 0); err != nil {
		return Report{}, err
	}
	if err := c.removed(ctx); err != nil {
		return Report{}, err
	}
	return c.report, nil
}

// An unverified is a checkpoint whose signatures were not checked yet.
type unverified struct {
	Checkpoint
	note []byte
}

// A checker scans a log once, from its first entry to its last.
type checker struct {
	in        Input
	report    Report
	notes     []unverified // by size; those before next were checked
	next      int
	trusted   []string    // verifier keys
	changes   []keyChange // announced since the last checkpoint that matched
	announced []string    // verifier keys, by any act
	published bool        // there is an act that keeps a checkpoint

	front   frontier
	batch   []position // hashes that were not compared yet
	missing []missing
	erasing map[string]int64 // sequence of the last act that erases or deletes an object, by object: "run ID" or "entry SEQUENCE"
}

// missing is an entry without a payload.
type missing struct {
	sequence int64
	run      string // ID of the run that it is about; empty: none
	act      string // kind; empty: a record
}

func (c *checker) find(sequence int64, object, format string, args ...any) {
	c.report.Findings = append(c.report.Findings, store.Finding{Sequence: sequence, Object: object, Problem: fmt.Sprintf(format, args...)})
}

// open parses the notes.
func (c *checker) open() error {
	c.trusted, c.erasing = slices.Clone(c.in.Keys), map[string]int64{}
	if len(c.in.Keys) > 0 {
		if _, err := NewVerifier(c.in.Keys...); err != nil {
			return err
		}
	}
	for _, data := range unique(c.in.Notes) {
		text, _, _ := cutNote(data)
		p, err := ParseCheckpoint(text)
		switch {
		case err != nil:
			c.find(0, "checkpoint", "%v", err)
		case p.Origin != c.in.Origin:
			c.find(0, checkpointObject(p), "it is of the log %s, this is %s", p.Origin, c.in.Origin)
		case p.Size > c.in.Size:
			c.find(0, checkpointObject(p), "the log has only %d entries: the last were removed, or an older copy was restored", c.in.Size)
		default:
			c.notes = append(c.notes, unverified{p, data})
		}
	}
	slices.SortStableFunc(c.notes, func(a, b unverified) int { return int(min(max(a.Size-b.Size, -1), 1)) })
	return nil
}

func checkpointObject(p Checkpoint) string { return fmt.Sprintf("checkpoint of %d entries", p.Size) }

// scan reads the entries after the given one. The frontier is that of the tree there.
func (c *checker) scan(ctx context.Context, after int64) error {
	c.checkpoints(after)
	for e, err := range c.in.Log.Entries(ctx, after, c.in.Size) {
		if errors.Is(err, assay.ErrDamaged) {
			c.find(0, "log", "%v", err)
			return nil
		}
		if err != nil {
			return err
		}
		c.entry(e)
		// The tree is computed from the headers, not from the leaves beside them.
		hashes, err := c.front.add(e.Sequence-1, tlog.RecordHash(e.Header))
		if err != nil {
			return err
		}
		c.batch = append(c.batch, hashes...)
		if len(c.batch) >= 4096 {
			if err := c.compare(); err != nil {
				return err
			}
		}
		c.checkpoints(e.Sequence)
	}
	if err := c.compare(); err != nil {
		return err
	}
	var err error
	c.report.Root, err = c.front.root(c.in.Size)
	return err
}

// entry checks one entry by itself.
func (c *checker) entry(e store.LogEntry) {
	h, err := journal.OpenHeader(e.Header, e.Leaf)
	if err != nil {
		c.find(e.Sequence, "entry", "%v", err)
		return
	}
	if h.Sequence != e.Sequence {
		c.find(e.Sequence, "entry", "its header is of entry %d", h.Sequence)
	}
	c.eraser(h)
	c.published = c.published || h.Act == KindPublished
	if e.Payload == nil {
		m := missing{sequence: e.Sequence, run: h.Run, act: h.Act}
		if h.Act != "" {
			m.run = h.Subject // if it is a run
		}
		c.missing = append(c.missing, m)
		return
	}
	if err := h.CheckPayload(e.Payload, e.Salt); err != nil {
		c.find(e.Sequence, "entry", "its %v", err)
		return
	}
	if h.Act == KindKeyAdded || h.Act == KindKeyRotated || h.Act == KindKeyLost {
		c.keyAct(e)
	}
}

func (c *checker) keyAct(e store.LogEntry) {
	a, err := journal.OpenAct(e.Header, e.Payload, e.Salt, e.Leaf)
	var k keyChange
	if err == nil {
		err = json.Unmarshal(a.Detail, &k)
	}
	if err != nil {
		c.find(e.Sequence, "entry", "act on a key: %v", err)
		return
	}
	c.announced = append(c.announced, k.Key)
	if a.Kind == KindKeyRotated {
		c.changes = append(c.changes, k)
	}
}

// compare compares hashes with the stored ones.
func (c *checker) compare() error {
	batch := c.batch
	c.batch = c.batch[:0]
	if c.in.Hashes == nil || len(batch) == 0 {
		return nil
	}
	positions := make([]int64, len(batch))
	for i, p := range batch {
		positions[i] = p.position
	}
	stored, err := c.in.Hashes.ReadHashes(positions)
	if errors.Is(err, assay.ErrDamaged) {
		c.find(0, "tree", "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	for i, h := range stored {
		if h == batch[i].hash {
			continue
		}
		level, n := tlog.SplitStoredHashIndex(positions[i])
		if level == 0 {
			c.find(n+1, "entry", "its header is not the one whose hash the tree has")
			continue
		}
		first := n<<level + 1
		c.find(0, "tree", "its hash over the entries %d to %d was altered", first, first+1<<level-1)
	}
	return nil
}

// checkpoints checks the notes over the first size entries.
func (c *checker) checkpoints(size int64) {
	for ; c.next < len(c.notes) && c.notes[c.next].Size == size; c.next++ {
		c.checkpoint(c.notes[c.next])
	}
}

func (c *checker) checkpoint(n unverified) {
	root, err := c.front.root(n.Size)
	if err == nil && root != n.Root {
		c.find(0, checkpointObject(n.Checkpoint), "an entry from %d to %d was altered, inserted, removed or moved, and all hashes were computed again",
			c.report.Covered()+1, n.Size)
		return
	}
	if err != nil {
		c.find(0, checkpointObject(n.Checkpoint), "%v", err)
		return
	}
	if len(c.trusted) > 0 {
		v, err := NewVerifier(c.trusted...)
		if err == nil {
			_, err = v.Open(n.note)
		}
		if err != nil {
			c.find(0, checkpointObject(n.Checkpoint), "%v", err)
			return
		}
	}
	c.report.Checkpoints = append(c.report.Checkpoints, n.Checkpoint)
	for _, k := range c.changes {
		if !slices.Contains(c.trusted, k.Replaces) {
			continue
		}
		c.trusted = slices.DeleteFunc(c.trusted, func(t string) bool { return t == k.Replaces || t == k.Key })
		c.trusted = append(c.trusted, k.Key)
	}
	c.changes = nil
}

// eraser remembers an act that erases payloads.
func (c *checker) eraser(h journal.Header) {
	switch h.Act {
	case store.KindRunDeleted, store.KindRunExpired, store.KindRunErased:
		c.erasing["run "+h.Subject] = h.Sequence
	case store.KindErased:
		c.erasing["entry "+h.Subject] = h.Sequence
	}
}

// removed checks that an act accounts for each payload that is missing.
func (c *checker) removed(ctx context.Context) error {
	if c.in.NoPayloads {
		return nil
	}
	c.missing = slices.DeleteFunc(c.missing, c.accounted)
	if len(c.missing) > 0 && c.in.grown != nil {
		if err := c.readErasers(ctx); err != nil {
			return err
		}
		c.missing = slices.DeleteFunc(c.missing, c.accounted)
	}
	for _, m := range c.missing {
		c.find(m.sequence, "entry", "its payload was removed, and no act says so")
	}
	return nil
}

// accounted reports whether an act says that a payload was erased, and counts it.
func (c *checker) accounted(m missing) bool {
	erased := c.erasing["entry "+strconv.FormatInt(m.sequence, 10)] > m.sequence
	if m.run != "" {
		erased = erased || c.erasing["run "+m.run] > m.sequence
	}
	if erased {
		c.report.Erased++
	}
	return erased
}

// readErasers reads the acts that were appended while the log was read.
func (c *checker) readErasers(ctx context.Context) error {
	size, err := c.in.grown(ctx)
	if err != nil {
		return err
	}
	for e, err := range c.in.Log.Entries(ctx, c.in.Size, size) {
		if err != nil {
			return err
		}
		if h, err := journal.OpenHeader(e.Header, e.Leaf); err == nil {
			c.eraser(h)
		}
	}
	return nil
}
