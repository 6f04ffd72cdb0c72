package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/entity"
)

// manifestName is the name of the file that lists the files of the index. It is replaced
// atomically. Other files never change after the manifest has named them.
const manifestName = "MANIFEST"

// A manifest is the content of the manifest file's only section, as JSON.
type manifest struct {
	Source   string           `json:"source"`   // identity of the source, see Identified; empty: unknown
	Analysis int              `json:"analysis"` // analysis.Version of the terms
	Entities int              `json:"entities"` // entity.Version of the entities
	Sequence int64            `json:"sequence"`
	Models   map[string]int64 `json:"models,omitempty"` // sequence up to which all vectors are included
	Segments []segmentEntry   `json:"segments"`
}

type segmentEntry struct {
	File     string         `json:"file"`
	Checksum uint32         `json:"checksum"`
	Deleted  []byte         `json:"deleted,omitempty"` // deleted rows, a roaring bitmap
	Vectors  []vectorsEntry `json:"vectors,omitempty"`
}

type vectorsEntry struct {
	File     string `json:"file"`
	Checksum uint32 `json:"checksum"`
	Model    string `json:"model"`
	Replaced []byte `json:"replaced,omitempty"` // rows with replaced vectors, a roaring bitmap
}

// load reads the index in the folder if it belongs to the given source. It also returns the file
// info of the manifest that it read.
func (d *folder) load(source string) (*snapshot, fs.FileInfo, error) {
	const attempts = 10 // each fails only if a writer replaced the manifest meanwhile
	var before []byte
	var lost error
	for range attempts {
		raw, info, err := d.readManifest()
		if err != nil {
			return nil, nil, err
		}
		if lost != nil && bytes.Equal(raw, before) {
			return nil, info, lost
		}
		m, err := parseManifest(raw)
		if err != nil {
			return nil, info, err
		}
		s, err := m.open(d, source)
		if err == nil {
			return s, info, nil
		}
		before, lost = raw, err
	}
	return nil, nil, lost
}

// readManifest reads the manifest file.
func (d *folder) readManifest() ([]byte, fs.FileInfo, error) {
	f, err := os.Open(d.path(manifestName))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	raw, err := io.ReadAll(f)
	return raw, info, err
}

func parseManifest(file []byte) (manifest, error) {
	sections, err := unframe(file, manifestFile, 1)
	if err != nil {
		return manifest{}, fmt.Errorf("%s: %w", manifestName, err)
	}
	var m manifest
	if err := json.Unmarshal(sections[0], &m); err != nil {
		return manifest{}, fmt.Errorf("%s: %w: %w", manifestName, assay.ErrDamaged, err)
	}
	return m, nil
}

// open opens the files that m names.
func (m manifest) open(d *folder, source string) (*snapshot, error) {
	if m.Source != source {
		return nil, fmt.Errorf("the index is of source %q, not %q: %w", m.Source, source, assay.ErrForeign)
	}
	if m.Analysis != analysis.Version {
		return nil, fmt.Errorf("the index has terms of version %d, this program makes %d", m.Analysis, analysis.Version)
	}
	if m.Entities != entity.Version {
		return nil, fmt.Errorf("the index has entities of version %d, this program finds %d", m.Entities, entity.Version)
	}
	var views []*view
	defer func() {
		for _, v := range views {
			v.eachFile((*file).release)
		}
	}()
	lost := make(map[string]bool) // models with unusable sidecars
	for _, entry := range m.Segments {
		v, err := entry.open(d, lost)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.File, err)
		}
		views = append(views, v)
	}
	whole := newSnapshot(m.Sequence, maps.Clone(m.Models), views)
	if len(lost) == 0 {
		return whole, nil
	}
	defer whole.release()
	return whole.withoutModels(func(name string) bool { return lost[name] }), nil
}

// open opens a segment with its sidecars and holds their files. If a sidecar cannot be used, open
// adds its model to lost, and the model's vectors must be fetched again.
func (e segmentEntry) open(d *folder, lost map[string]bool) (v *view, err error) {
	s, err := d.openSegment(e.File, e.Checksum)
	if err != nil {
		return nil, err
	}
	v = wholeView(s)
	defer func() {
		if err != nil {
			v.eachFile((*file).release)
		}
	}()
	deleted, err := parseRows(e.Deleted, s.rows)
	if err != nil {
		return v, err
	}
	if deleted != nil {
		v = v.without(deleted)
	}
	for _, entry := range e.Vectors {
		c, err := entry.open(d, s)
		if err != nil {
			lost[entry.Model] = true
			continue
		}
		v = v.withSidecars(append(v.sidecars, c))
	}
	return v, nil
}

// openSegment opens the named segment file and holds it.
func (d *folder) openSegment(name string, sum uint32) (*segment, error) {
	if name != filepath.Base(name) || !strings.HasSuffix(name, segmentSuffix) {
		return nil, fmt.Errorf("no name of a segment: %w", assay.ErrDamaged)
	}
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	s, err := f.segment()
	if err == nil && checksum(f.bytes) != sum {
		err = fmt.Errorf("not the segment that was written: %w", assay.ErrDamaged)
	}
	if err != nil {
		f.release()
		return nil, err
	}
	return s, nil
}

// open opens a sidecar of a segment and holds its file.
func (e vectorsEntry) open(d *folder, s *segment) (*sidecar, error) {
	if e.File != filepath.Base(e.File) || !strings.HasSuffix(e.File, vectorsSuffix) {
		return nil, fmt.Errorf("no name of vectors: %w", assay.ErrDamaged)
	}
	f, err := d.open(e.File)
	if err != nil {
		return nil, err
	}
	v, err := f.vectors(uint32(s.rows))
	if err == nil && (checksum(f.bytes) != e.Checksum || v.model() != e.Model) {
		err = fmt.Errorf("not the vectors that were written: %w", assay.ErrDamaged)
	}
	var replaced bitset
	if err == nil {
		replaced, err = parseRows(e.Replaced, s.rows)
	}
	if err != nil {
		f.release()
		return nil, err
	}
	return &sidecar{file: f, vectors: v, replaced: replaced}, nil
}

// parseRows reads a roaring bitmap of rows, or returns nil for an empty b.
func parseRows(b []byte, rows int) (bitset, error) {
	if len(b) == 0 {
		return nil, nil
	}
	u := newUnion(uint32(rows))
	if err := u.add(chunkSet{roaring: true, bytes: b}); err != nil {
		return nil, err
	}
	return u.set(), nil
}

// appendRows returns a roaring bitmap of rows, or nil if there are none.
func appendRows(rows bitset) ([]byte, error) {
	if rows.count() == 0 {
		return nil, nil
	}
	set := roaring.FromDense(rows, true)
	set.RunOptimize()
	return set.ToBytes()
}

// manifest returns the manifest that describes s. The files of s must be in a folder.
func (s *snapshot) manifest(source string) (manifest, error) {
	m := manifest{Source: source, Analysis: analysis.Version, Entities: entity.Version, Sequence: s.sequence, Models: s.models, Segments: []segmentEntry{}}
	for _, v := range s.views {
		deleted, err := appendRows(v.deleted)
		if err != nil {
			return manifest{}, err
		}
		entry := segmentEntry{File: v.segment.file.name, Checksum: checksum(v.segment.file.bytes), Deleted: deleted}
		for _, c := range v.sidecars {
			replaced, err := appendRows(c.replaced)
			if err != nil {
				return manifest{}, err
			}
			entry.Vectors = append(entry.Vectors, vectorsEntry{File: c.file.name, Checksum: checksum(c.file.bytes), Model: c.vectors.model(), Replaced: replaced})
		}
		m.Segments = append(m.Segments, entry)
	}
	return m, nil
}

// save writes the snapshot to the folder by replacing the manifest. The snapshot's files must be in
// the folder. If save fails before the replacement, the index on disk is unchanged. save returns
// the file info of the new manifest.
func (d *folder) save(s *snapshot, source string) (fs.FileInfo, error) {
	m, err := s.manifest(source)
	if err != nil {
		return nil, err
	}
	payload, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, writeError(err)
	}
	if err := d.sync(); err != nil { // makes the named files durable before the manifest
		return nil, writeError(err)
	}
	err = d.write(manifestName, func(w io.Writer) error {
		frame := newFrameWriter(w, manifestFile)
		_, _ = frame.section().Write(payload)
		return frame.finish()
	})
	if err == nil {
		err = d.sync()
	}
	if err != nil {
		return nil, writeError(err)
	}
	return d.stat()
}

// stat returns the file info of the manifest, or nil if there is none.
func (d *folder) stat() (fs.FileInfo, error) {
	info, err := os.Stat(d.path(manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// sameManifest reports whether two file infos describe the same manifest.
func sameManifest(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
