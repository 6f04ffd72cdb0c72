package index

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// OpenSmall is like Open, with limits so small that a few documents make several segments, builders
// and merges.
func OpenSmall(ctx context.Context, dir string, source Source) (*Searcher, error) {
	return open(ctx, dir, source, smallLimits)
}

// OpenEager is like OpenSmall, with a merge after nearly every Flush.
func OpenEager(ctx context.Context, dir string, source Source) (*Searcher, error) {
	eager := smallLimits
	eager.smallRows = 0
	return open(ctx, dir, source, eager)
}

var smallLimits = limits{builderPostings: 300, builderBytes: 16 << 10, batchBytes: 2 << 10, vectorBytes: 2 << 10, smallRows: 8}

// ManifestFiles returns the files that the manifest in dir names.
func ManifestFiles(dir string) ([]string, error) {
	raw, _, err := newFolder(dir).readManifest()
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(raw)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range m.Segments {
		names = append(names, s.File)
		for _, v := range s.Vectors {
			names = append(names, v.File)
		}
	}
	return names, nil
}

// Forge writes a file of the index in dir as someone who knows the format would, with a correct
// checksum in the file and in the manifest.
func Forge(dir, name string, file []byte) error {
	if len(file) >= 4 {
		sum := crc32.Checksum(file[:len(file)-4], castagnoli)
		binary.LittleEndian.PutUint32(file[len(file)-4:], sum)
	}
	if err := os.WriteFile(filepath.Join(dir, name), file, 0o600); err != nil || name == manifestName {
		return err
	}
	d := newFolder(dir)
	raw, _, err := d.readManifest()
	if err != nil {
		return err
	}
	m, err := parseManifest(raw)
	if err != nil {
		return err
	}
	for i := range m.Segments {
		s := &m.Segments[i]
		if s.File == name {
			s.Checksum = checksum(file)
		}
		for j := range s.Vectors {
			if s.Vectors[j].File == name {
				s.Vectors[j].Checksum = checksum(file)
			}
		}
	}
	payload, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return d.write(manifestName, func(w io.Writer) error {
		frame := newFrameWriter(w, manifestFile)
		_, _ = frame.section().Write(payload)
		return frame.finish()
	})
}

// LargestSegment returns the number of postings in the largest segment that the manifest in dir
// names.
func LargestSegment(dir string) (int, error) {
	d := newFolder(dir)
	names, err := ManifestFiles(dir)
	if err != nil {
		return 0, err
	}
	largest := 0
	for _, name := range names {
		f, err := d.open(name)
		if err != nil {
			return 0, err
		}
		defer f.release()
		s, err := f.segment()
		if err != nil {
			return 0, err
		}
		count, terms := 0, s.dictionary.terms()
		for terms.next() {
			count += terms.postings().count
		}
		if terms.err() != nil {
			return 0, terms.err()
		}
		largest = max(largest, count)
	}
	return largest, nil
}
