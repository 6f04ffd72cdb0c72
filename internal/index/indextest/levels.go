package indextest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// Levels are the promises of index.Index that an index on a remote service may keep only in part.
// Access, deletion, the separation of tenants, filters and counts have no levels.
type Levels struct {
	// BitEqualScores: equal content gives scores that are equal to the last bit, in whatever steps
	// it was written. Otherwise they are equal within 1e-6.
	BitEqualScores bool

	// ReadYourWrites: a search sees every change committed before it began. Otherwise it sees the
	// content of the last Flush without the documents that changed since then. Result.Sequence is
	// the sequence number of that Flush.
	ReadYourWrites bool

	// ExactNearest: Nearest misses nothing if at most 100 chunks are eligible.
	ExactNearest bool

	// Files: the index consists of files in the folder that it was opened with. Otherwise the
	// folder is only a name, and equal names are the same index.
	Files bool
}

// Full are the levels of the index on one machine.
var Full = Levels{BitEqualScores: true, ReadYourWrites: true, ExactNearest: true, Files: true}

// A contract is an index under test.
type contract struct {
	levels   Levels
	opener   Opener
	flushing chan struct{} // a lock; guards the flushes of lagging indexes
}

func newContract(open Opener, levels Levels) contract {
	return contract{levels: levels, opener: open, flushing: make(chan struct{}, 1)}
}

// open opens an index. If it does not promise ReadYourWrites, it is flushed before every search, so
// that the same test applies.
func (c contract) open(t testing.TB, source index.Source, dir string) index.Index {
	t.Helper()
	ix := c.opener(t, source, dir)
	if c.levels.ReadYourWrites {
		return ix
	}
	return lagging{ix, source, c.flushing}
}

func (c contract) newModel(s *Source) *model { return newModel(s, c.levels) }

// scores returns the option that compares scores by level.
func (c contract) scores() cmp.Option {
	if c.levels.BitEqualScores {
		return cmp.Options{}
	}
	return cmpopts.EquateApprox(1e-6, 1e-6)
}

// lagging is an index that sees changes only after a Flush. It flushes before every search. The
// flushes of all indexes of a contract exclude each other, because an index has one writer.
type lagging struct {
	index.Index
	source   index.Source
	flushing chan struct{}
}

// Flush implements index.Index.
func (l lagging) Flush(ctx context.Context) error {
	select {
	case l.flushing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.flushing }()
	return l.Index.Flush(ctx)
}

// flushText flushes the index. It succeeds if the text is up to date and only the vectors are not.
func (l lagging) flushText(ctx context.Context) error {
	err := l.Flush(ctx)
	if err == nil {
		return nil
	}
	if sequence, sourceErr := l.source.Sequence(ctx); sourceErr == nil && sequence > 0 && l.Sequence() == sequence {
		return nil
	}
	return err
}

// Search implements index.Index.
func (l lagging) Search(ctx context.Context, access assay.Access, q assay.Query) (index.Result, error) {
	if err := l.flushText(ctx); err != nil {
		return index.Result{}, err
	}
	return l.Index.Search(ctx, access, q)
}

// Nearest implements index.Index.
func (l lagging) Nearest(ctx context.Context, access assay.Access, q assay.Query, v index.Vector) (index.Result, error) {
	if err := l.Flush(ctx); err != nil {
		return index.Result{}, err
	}
	return l.Index.Nearest(ctx, access, q, v)
}

// Similarities implements index.Index.
func (l lagging) Similarities(ctx context.Context, access assay.Access, v index.Vector, chunks []string) ([]*float64, error) {
	if err := l.Flush(ctx); err != nil {
		return nil, err
	}
	return l.Index.Similarities(ctx, access, v, chunks)
}

// Vectors implements index.Index.
func (l lagging) Vectors(ctx context.Context, access assay.Access, model string, chunks []string) ([][]float32, error) {
	if err := l.Flush(ctx); err != nil {
		return nil, err
	}
	return l.Index.Vectors(ctx, access, model, chunks)
}

// Settle merges in the background, if the index does that.
func (l lagging) Settle(ctx context.Context) error {
	if s, ok := l.Index.(settler); ok {
		return s.Settle(ctx)
	}
	return nil
}
