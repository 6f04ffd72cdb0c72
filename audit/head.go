package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var errNoLast = fmt.Errorf("checkpoints of this log were published, but the last one is not known: %w", assay.ErrDamaged)

// Head returns a checkpoint over all entries of a log, after it has checked those since the last
// checkpoint: their headers, payloads and hashes, and that the tree continues the one of last. A nil
// last is none, and everything is checked. The error is assay.ErrDamaged if anything differs; such a
// log must not be signed.
func Head(ctx context.Context, a store.Audit, last *Checkpoint) (Checkpoint, error) {
	origin, err := Origin(ctx, a)
	if err != nil {
		return Checkpoint{}, err
	}
	size, err := a.Size(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	c := &checker{in: Input{Log: a, Origin: origin, Size: size, Hashes: hashes(ctx, a), grown: a.Size}, erasing: map[string]int64{}}
	after := int64(0)
	if last != nil {
		if err := c.resume(*last); err != nil {
			return Checkpoint{}, err
		}
		after = last.Size
	}
	if err := c.scan(ctx, after); err != nil {
		return Checkpoint{}, err
	}
	if err := c.removed(ctx); err != nil {
		return Checkpoint{}, err
	}
	if last == nil && c.published {
		return Checkpoint{}, errNoLast
	}
	if err := findingsError(c.report.Findings); err != nil {
		return Checkpoint{}, fmt.Errorf("the log differs from itself and is not signed: %w", err)
	}
	return Checkpoint{Origin: origin, Size: size, Root: c.report.Root}, nil
}

// resume begins after a checkpoint, whose root must be that of the stored hashes.
func (c *checker) resume(last Checkpoint) error {
	switch {
	case last.Origin != c.in.Origin:
		return fmt.Errorf("the last checkpoint is of the log %s, this is %s: %w", last.Origin, c.in.Origin, assay.ErrDamaged)
	case last.Size > c.in.Size:
		return fmt.Errorf("the last checkpoint has %d entries, the log only %d: entries were removed, or an older copy was restored: %w", last.Size, c.in.Size, assay.ErrDamaged)
	}
	f, root, err := loadFrontier(last.Size, c.in.Hashes)
	if err != nil {
		return err
	}
	if root != last.Root {
		return fmt.Errorf("the first %d entries are not those of the last checkpoint: %w", last.Size, assay.ErrDamaged)
	}
	c.front = *f
	return nil
}

// findingsError returns an error of kind assay.ErrDamaged that names the first findings, or nil if
// there are none.
func findingsError(findings []store.Finding) error {
	const most = 5
	if len(findings) == 0 {
		return nil
	}
	errs := []error{assay.ErrDamaged}
	for _, f := range findings[:min(len(findings), most)] {
		errs = append(errs, errors.New(f.String()))
	}
	if more := len(findings) - most; more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// VerifyStore verifies a log in a store with the given checkpoints and keys, and then compares
// everything that is stored beside the log with it.
func VerifyStore(ctx context.Context, a store.Audit, notes [][]byte, keys []string) (Report, error) {
	origin, err := Origin(ctx, a)
	if err != nil {
		return Report{}, err
	}
	size, err := a.Size(ctx)
	if err != nil {
		return Report{}, err
	}
	report, err := Verify(ctx, Input{Log: a, Origin: origin, Size: size, Hashes: hashes(ctx, a), Notes: notes, Keys: keys, grown: a.Size})
	if err != nil {
		return Report{}, err
	}
	err = a.Check(ctx, func(f store.Finding) error {
		report.Findings = append(report.Findings, f)
		return nil
	})
	if errors.Is(err, assay.ErrDamaged) {
		report.Findings = append(report.Findings, store.Finding{Object: "store", Problem: err.Error()})
		err = nil
	}
	return report, err
}
