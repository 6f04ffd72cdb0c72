package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// exportFormat is the version of the exported form. OpenExport rejects newer ones.
const exportFormat = 1

// maxExportLine bounds a line of an exported log in bytes. The longest payloads are acts on content,
// of about 150 bytes per document.
const maxExportLine = 256 << 20

// The lines of an exported log. Each is a JSON object. The first is an exportHead, then come an
// exportKey for each public key and an exportNote for each checkpoint that the store has, and an
// exportEntry for each entry.
type (
	exportHead struct {
		Format   int    `json:"assay_audit_export"`
		Origin   string `json:"origin"`
		Size     int64  `json:"size"`
		Root     string `json:"root"`
		Payloads bool   `json:"payloads"`
	}
	exportKey struct {
		Key string `json:"key"`
	}
	exportNote struct {
		Checkpoint string `json:"checkpoint"`
	}
	exportEntry struct {
		Sequence int64   `json:"sequence"`
		Header   string  `json:"header"`
		Leaf     []byte  `json:"leaf"`
		Payload  *string `json:"payload,omitempty"`
		Salt     []byte  `json:"salt,omitempty"`
	}
)

// WriteExport writes the first size entries of a log with the checkpoints and verifier keys given. The
// form is lines of JSON that OpenExport reads. Strings of 256 bytes or more in the records of runs
// are included as their hashes only.
func WriteExport(ctx context.Context, w io.Writer, a store.Audit, size int64, notes [][]byte, keys []string, payloads bool) error {
	origin, err := Origin(ctx, a)
	if err != nil {
		return err
	}
	root, err := RootAt(ctx, a, size)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(buffered)
	enc.SetEscapeHTML(false)
	lines := []any{exportHead{exportFormat, origin, size, root.String(), payloads}}
	for _, k := range keys {
		lines = append(lines, exportKey{k})
	}
	for _, n := range notes {
		lines = append(lines, exportNote{string(n)})
	}
	for _, line := range lines {
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	for e, err := range a.Entries(ctx, 0, size) {
		if err != nil {
			return err
		}
		line := exportEntry{Sequence: e.Sequence, Header: string(e.Header), Leaf: e.Leaf[:]}
		if payloads && e.Payload != nil {
			text := string(e.Payload)
			line.Payload, line.Salt = &text, e.Salt
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// An Export is an exported log in a file. It implements Log. Nothing of it is to be trusted before
// Verify.
type Export struct {
	Origin   string
	Size     int64
	Payloads bool
	Keys     []string // that the log's owner had; not to be trusted because they are here
	Notes    [][]byte // signed checkpoints

	root string // as the first line has it
	open func() (io.ReadCloser, error)
}

// OpenExport reads the head of an exported log. The error is assay.ErrInvalid for a file of another
// form and assay.ErrNewer for one of a newer version.
func OpenExport(path string) (*Export, error) {
	return openExport(func() (io.ReadCloser, error) { return os.Open(path) })
}

func openExport(open func() (io.ReadCloser, error)) (x *Export, err error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	x = &Export{open: open}
	s := scanLines(f)
	if !s.Scan() {
		return nil, exportError(s, "it is empty")
	}
	var head exportHead
	if err := json.Unmarshal(s.Bytes(), &head); err != nil || head.Format == 0 {
		return nil, exportError(s, "it is no exported log")
	}
	if head.Format > exportFormat {
		return nil, fmt.Errorf("exported log of format %d, this version reads %d: %w", head.Format, exportFormat, assay.ErrNewer)
	}
	if err := checkName(head.Origin); err != nil || head.Size < 0 {
		return nil, exportError(s, "its first line has no origin or no size")
	}
	x.Origin, x.Size, x.Payloads = head.Origin, head.Size, head.Payloads
	x.root = head.Root
	for s.Scan() {
		var line struct {
			Key        *string
			Checkpoint *string
		}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			return x, nil // an entry that Verify reports
		}
		switch {
		case line.Key != nil:
			x.Keys = append(x.Keys, *line.Key)
		case line.Checkpoint != nil:
			x.Notes = append(x.Notes, []byte(*line.Checkpoint))
		default:
			return x, nil
		}
	}
	if s.Err() != nil {
		return nil, exportError(s, "")
	}
	return x, nil
}

func scanLines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 1<<16), maxExportLine)
	return s
}

func exportError(s *bufio.Scanner, problem string) error {
	if err := s.Err(); err != nil {
		problem = err.Error()
	}
	return fmt.Errorf("exported log: %w: %s", assay.ErrInvalid, problem)
}

// Entries implements Log. The error is assay.ErrDamaged where the file has another form or ends too
// early.
func (x *Export) Entries(_ context.Context, after, upTo int64) iter.Seq2[store.LogEntry, error] {
	return func(yield func(store.LogEntry, error) bool) {
		f, err := x.open()
		if err != nil {
			yield(store.LogEntry{}, err)
			return
		}
		defer f.Close()
		s, next := scanLines(f), int64(1)
		for i := 0; next <= upTo && s.Scan(); i++ {
			if i <= len(x.Keys)+len(x.Notes) {
				continue
			}
			e, err := parseEntry(s.Bytes(), next)
			if err != nil {
				yield(e, err)
				return
			}
			next++
			if e.Sequence > after && !yield(e, nil) {
				return
			}
		}
		if next <= upTo {
			err := fmt.Errorf("entry %d is missing: the file ends after %d: %w", next, next-1, assay.ErrDamaged)
			if s.Err() != nil {
				err = fmt.Errorf("entry %d: %w: %w", next, assay.ErrDamaged, s.Err())
			}
			yield(store.LogEntry{}, err)
			return
		}
		if upTo == x.Size && s.Scan() {
			yield(store.LogEntry{}, fmt.Errorf("the file goes on after entry %d: %w", upTo, assay.ErrDamaged))
		}
	}
}

// parseEntry reads the line of the entry with this sequence.
func parseEntry(line []byte, sequence int64) (store.LogEntry, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	var e exportEntry
	if err := dec.Decode(&e); err != nil {
		return store.LogEntry{}, fmt.Errorf("entry %d: %w: %w", sequence, assay.ErrDamaged, err)
	}
	if !utf8.Valid(line) || dec.More() {
		return store.LogEntry{}, fmt.Errorf("entry %d: its line is not one JSON object in UTF-8: %w", sequence, assay.ErrDamaged)
	}
	if e.Sequence != sequence {
		return store.LogEntry{}, fmt.Errorf("entry %d is missing, entry %d comes instead: %w", sequence, e.Sequence, assay.ErrDamaged)
	}
	if len(e.Leaf) != tlog.HashSize {
		return store.LogEntry{}, fmt.Errorf("entry %d: its leaf has %d bytes: %w", sequence, len(e.Leaf), assay.ErrDamaged)
	}
	out := store.LogEntry{Sequence: e.Sequence, Header: []byte(e.Header), Leaf: [32]byte(e.Leaf), Salt: e.Salt}
	if h, err := journal.OpenHeader(out.Header, out.Leaf); err == nil {
		out.Run = h.Run
	}
	if e.Payload != nil {
		out.Payload = []byte(*e.Payload)
	}
	return out, nil
}

// Verify verifies the exported log with its own checkpoints and those given.
func (x *Export) Verify(ctx context.Context, notes [][]byte, keys []string) (Report, error) {
	all := append(append([][]byte{}, x.Notes...), notes...)
	c, err := newChecker(Input{Log: x, Origin: x.Origin, Size: x.Size, Notes: all, Keys: keys, NoPayloads: !x.Payloads})
	if err != nil {
		return Report{}, err
	}
	report, err := c.run(ctx)
	if err == nil && report.Root != (tlog.Hash{}) && report.Root.String() != x.root {
		c.find(0, "export", "the root in its first line is not that of its entries")
	}
	for _, k := range x.Keys {
		if x.Payloads && !slices.Contains(c.announced, k) {
			c.find(0, "export", "it has the key %s, which the log does not announce", k)
		}
	}
	return c.report, err
}

// unique drops notes that are the same bytes as one before.
func unique(notes [][]byte) [][]byte {
	seen := map[string]bool{}
	var kept [][]byte
	for _, n := range notes {
		if key := strings.TrimSpace(string(n)); !seen[key] {
			seen[key], kept = true, append(kept, n)
		}
	}
	return kept
}
