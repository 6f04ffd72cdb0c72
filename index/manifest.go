package index

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// manifestName is the file that says what the index is made of. It is replaced
// as a whole; no other file is ever changed after it was named there.
const manifestName = "MANIFEST"

// Files whose names end so are the index's own and removed when the manifest
// does not name them.
const (
	segmentSuffix   = ".segment"
	temporarySuffix = ".tmp"
)

// A manifest is the payload of the manifest file, as JSON.
type manifest struct {
	Source   string          `json:"source"`   // whose content it is, see Identified; empty: not known
	Analysis int             `json:"analysis"` // analysis.Version of its terms
	Sequence int64           `json:"sequence"`
	Segments []manifestEntry `json:"segments"`
}

type manifestEntry struct {
	File     string `json:"file"`
	Checksum uint32 `json:"checksum"`
	// Deleted are the numbers of its deleted documents: for each the difference
	// to the one before (the first: to -1), less one, as a varint.
	Deleted []byte `json:"deleted,omitempty"`
}

// load reads the index that dir holds, if it belongs to this source, and the
// names of its segments' files.
func load(dir, source string) (*snapshot, map[*segment]string, error) {
	const attempts = 10 // each lost to a writer that replaced the manifest meanwhile
	var before []byte
	var lost error
	for range attempts {
		raw, err := os.ReadFile(filepath.Join(dir, manifestName))
		if err != nil {
			return nil, nil, err
		}
		if lost != nil && bytes.Equal(raw, before) {
			break
		}
		m, err := readManifest(raw)
		if err != nil {
			return nil, nil, err
		}
		s, names, err := m.open(dir, source)
		if err == nil {
			return s, names, nil
		}
		before, lost = raw, err
	}
	return nil, nil, lost
}

func readManifest(file []byte) (manifest, error) {
	payload, err := unframe(file, manifestFile)
	if err != nil {
		return manifest{}, fmt.Errorf("%s: %w", manifestName, err)
	}
	var m manifest
	if err := json.Unmarshal(payload, &m); err != nil {
		return manifest{}, fmt.Errorf("%s: %w: %w", manifestName, assay.ErrDamaged, err)
	}
	return m, nil
}

// open opens the segments that m names, and returns their names.
func (m manifest) open(dir, source string) (*snapshot, map[*segment]string, error) {
	if m.Source != source {
		return nil, nil, fmt.Errorf("the index is of source %q, not %q: %w", m.Source, source, assay.ErrForeign)
	}
	if m.Analysis != analysis.Version {
		return nil, nil, fmt.Errorf("the index has terms of version %d, this program makes %d", m.Analysis, analysis.Version)
	}
	views := make([]view, 0, len(m.Segments))
	names := make(map[*segment]string)
	for _, entry := range m.Segments {
		v, err := entry.open(dir)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", entry.File, err)
		}
		views = append(views, v)
		names[v.segment] = entry.File
	}
	return newSnapshot(m.Sequence, views), names, nil
}

func (e manifestEntry) open(dir string) (view, error) {
	if e.File != filepath.Base(e.File) || !strings.HasSuffix(e.File, segmentSuffix) {
		return view{}, fmt.Errorf("no name of a segment: %w", assay.ErrDamaged)
	}
	file, err := os.ReadFile(filepath.Join(dir, e.File))
	if err != nil {
		return view{}, err
	}
	s, err := openSegment(file)
	if err != nil {
		return view{}, err
	}
	if checksum(file) != e.Checksum {
		return view{}, fmt.Errorf("not the segment that was written: %w", assay.ErrDamaged)
	}
	v := wholeView(s)
	deleted, err := decodeDeleted(e.Deleted, s.documentCount)
	if err != nil || len(deleted) == 0 {
		return v, err
	}
	return v.without(deleted), nil
}

func encodeDeleted(deleted bitset) []byte {
	var b []byte
	next := uint32(0)
	deleted.each(func(n uint32) {
		b = binary.AppendUvarint(b, uint64(n-next))
		next = n + 1
	})
	return b
}

func decodeDeleted(b []byte, documents int) ([]uint32, error) {
	var list []uint32
	next := uint64(0)
	for d := (decoder{rest: b}); len(d.rest) > 0; {
		n := next + d.uint()
		if d.failed || n >= uint64(documents) {
			return nil, damaged("a deleted document points nowhere")
		}
		list = append(list, uint32(n))
		next = n + 1
	}
	return list, nil
}

// save makes dir hold the snapshot: first the segments that are not there yet,
// then the manifest, then what no manifest names any more is removed. Until the
// manifest is replaced the index on disk is what it was. The segments in written
// were read from or written to dir before; those now there are returned.
func (s *snapshot) save(dir, source string, written map[*segment]string) (map[*segment]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, writeError(err)
	}
	m := manifest{Source: source, Analysis: analysis.Version, Sequence: s.sequence, Segments: []manifestEntry{}}
	saved := make(map[*segment]string)
	for _, v := range s.views {
		name, ok := written[v.segment]
		if !ok || !exists(filepath.Join(dir, name)) {
			name = v.segment.fileName()
			if err := writeFile(dir, name, v.segment.bytes); err != nil {
				return nil, writeError(err)
			}
		}
		saved[v.segment] = name
		m.Segments = append(m.Segments, manifestEntry{File: name, Checksum: checksum(v.segment.bytes), Deleted: encodeDeleted(v.deleted)})
	}
	payload, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if err := writeFile(dir, manifestName, seal(append(newFrame(manifestFile), payload...))); err != nil {
		return nil, writeError(err)
	}
	return saved, removeOthers(dir, slices.Collect(maps.Values(saved)))
}

// writeFile makes a file appear whole and durable, or not at all.
func writeFile(dir, name string, data []byte) (err error) {
	f, err := os.CreateTemp(dir, name+".*"+temporarySuffix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a rename durable, where a directory can be synced.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// removeOthers removes the segments in dir that are not among names and what a
// crash left of files being written. What cannot be removed is left for the next
// time.
func removeOthers(dir string, names []string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		own := strings.HasSuffix(name, segmentSuffix) || strings.HasSuffix(name, temporarySuffix)
		if own && !slices.Contains(names, name) {
			_ = os.Remove(filepath.Join(dir, name)) // where a reader has it open that may be forbidden
		}
	}
	return nil
}

// writeError adds the kind that callers tell apart.
func writeError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %w", assay.ErrFull, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", assay.ErrReadOnly, err)
	}
	return err
}
