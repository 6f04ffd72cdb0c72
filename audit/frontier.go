package audit

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
)

// A position is a stored hash of a tree with its position, as tlog.StoredHashIndex gives it.
type position struct {
	position int64
	hash     tlog.Hash
}

// A frontier has the hashes of the largest complete subtrees of a tree, left to right. These are all
// that is needed to append to the tree and to compute its root, and at most one per level.
type frontier struct{ hashes []position }

// ReadHashes implements tlog.HashReader.
func (f *frontier) ReadHashes(positions []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(positions))
next:
	for i, p := range positions {
		for j := len(f.hashes) - 1; j >= 0; j-- {
			if f.hashes[j].position == p {
				hashes[i] = f.hashes[j].hash
				continue next
			}
		}
		return nil, fmt.Errorf("hash %d of the tree is not known: %w", p, assay.ErrDamaged)
	}
	return hashes, nil
}

// add appends the leaf n, which counts from 0, and returns the hashes that it completes.
func (f *frontier) add(n int64, leaf tlog.Hash) ([]position, error) {
	hashes, err := tlog.StoredHashesForRecordHash(n, leaf, f)
	if err != nil {
		return nil, err
	}
	first := tlog.StoredHashIndex(0, n)
	added := make([]position, len(hashes))
	for i, h := range hashes {
		added[i] = position{first + int64(i), h}
	}
	// Each hash above the leaf's completes the subtree of one more hash on the left.
	f.hashes = append(f.hashes[:len(f.hashes)-(len(added)-1)], added[len(added)-1])
	return added, nil
}

// root returns the root over the first size leaves, which must be all.
func (f *frontier) root(size int64) (tlog.Hash, error) { return tlog.TreeHash(size, f) }

// loadFrontier reads the frontier of the tree over the first size leaves and returns its root.
func loadFrontier(size int64, from tlog.HashReader) (*frontier, tlog.Hash, error) {
	f := &frontier{}
	root, err := tlog.TreeHash(size, tlog.HashReaderFunc(func(positions []int64) ([]tlog.Hash, error) {
		hashes, err := from.ReadHashes(positions)
		if err != nil {
			return nil, err
		}
		for i, p := range positions {
			f.hashes = append(f.hashes, position{p, hashes[i]})
		}
		return hashes, nil
	}))
	return f, root, err
}
