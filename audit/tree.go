// Package audit makes the audit log of a store checkable by anyone.
//
// A log (store.Audit) is a Merkle tree over its entries. A [Checkpoint] fixes all entries up to a
// size; it is signed with a [Key] that is kept apart from the data and published. Whoever has a
// checkpoint and the verifier key can check offline that no entry before it was altered, dropped,
// inserted or moved.
package audit

import (
	"context"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Origin returns the origin of a log's checkpoints: "assay-audit/" and the log's identity.
func Origin(ctx context.Context, a store.Audit) (string, error) {
	word, err := a.Identity(ctx)
	if err != nil {
		return "", err
	}
	return "assay-audit/" + word, nil
}

// hashes returns a reader of a log's stored hashes.
func hashes(ctx context.Context, a store.Audit) tlog.HashReader {
	return tlog.HashReaderFunc(func(positions []int64) ([]tlog.Hash, error) {
		stored, err := a.Hashes(ctx, positions)
		if err != nil {
			return nil, err
		}
		list := make([]tlog.Hash, len(stored))
		for i, h := range stored {
			list[i] = h
		}
		return list, nil
	})
}

// RootAt returns the root over the first size entries, computed from the stored hashes, which are
// not compared with the entries. The root of no entries is the SHA-256 of the empty string.
func RootAt(ctx context.Context, a store.Audit, size int64) (tlog.Hash, error) {
	root, err := tlog.TreeHash(size, hashes(ctx, a))
	if err != nil {
		return tlog.Hash{}, fmt.Errorf("root of %d entries: %w", size, err)
	}
	return root, nil
}

// Inclusion returns the proof that the entry with this sequence, which counts from 1, is in the tree
// over the first size entries. The error is assay.ErrInvalid unless 1 ≤ sequence ≤ size.
func Inclusion(ctx context.Context, a store.Audit, sequence, size int64) (tlog.RecordProof, error) {
	if sequence < 1 || sequence > size {
		return nil, fmt.Errorf("entry %d in %d: %w", sequence, size, assay.ErrInvalid)
	}
	proof, err := tlog.ProveRecord(size, sequence-1, hashes(ctx, a))
	if err != nil {
		return nil, fmt.Errorf("prove entry %d in %d: %w", sequence, size, err)
	}
	return proof, nil
}

// CheckInclusion checks the proof that the entry with this sequence and leaf hash is under the
// checkpoint. The error is assay.ErrDamaged.
func CheckInclusion(proof tlog.RecordProof, c Checkpoint, sequence int64, leaf tlog.Hash) error {
	if sequence < 1 || sequence > c.Size {
		return fmt.Errorf("entry %d is not under a checkpoint of %d entries: %w", sequence, c.Size, assay.ErrDamaged)
	}
	if err := tlog.CheckRecord(proof, c.Size, c.Root, sequence-1, leaf); err != nil {
		return fmt.Errorf("entry %d is not under the checkpoint of %d entries: %w: %w", sequence, c.Size, assay.ErrDamaged, err)
	}
	return nil
}

// Consistency returns the proof that the tree over the first size entries continues the one over
// the first old. The proof for old = 0 or old = size is empty. The error is assay.ErrInvalid unless
// 0 ≤ old ≤ size.
func Consistency(ctx context.Context, a store.Audit, old, size int64) (tlog.TreeProof, error) {
	if old < 0 || old > size {
		return nil, fmt.Errorf("%d entries in %d: %w", old, size, assay.ErrInvalid)
	}
	if old == 0 || old == size {
		return nil, nil
	}
	proof, err := tlog.ProveTree(size, old, hashes(ctx, a))
	if err != nil {
		return nil, fmt.Errorf("prove %d entries in %d: %w", old, size, err)
	}
	return proof, nil
}
