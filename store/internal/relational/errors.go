package relational

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/assay-rag/assay"
)

// kinds are the error kinds that an error of this package may already wrap.
var kinds = []error{
	assay.ErrInvalid, assay.ErrNotFound, assay.ErrLocked, assay.ErrLeased, assay.ErrReadOnly,
	assay.ErrFull, assay.ErrNewer, assay.ErrForeign, assay.ErrDamaged, assay.ErrStopped,
}

// Wrap adds the operation that failed to err, and an error kind if it has none yet. It returns nil if
// err is nil.
func Wrap(err error, format string, args ...any) error { return wrap(err, format, args...) }

// wrap adds the operation that failed to err, and an error kind if it has none yet. It returns nil
// if err is nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	doing := fmt.Sprintf(format, args...)
	if kind := kindOf(err); kind != nil {
		return fmt.Errorf("%s: %w: %w", doing, kind, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// kindOf maps an error from the system to one of assay's kinds. It returns nil if none
// fits or if err wraps one already.
func kindOf(err error) error {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return nil
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return assay.ErrReadOnly
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return assay.ErrFull
	}
	return nil
}

// damaged returns an error of kind assay.ErrDamaged with a description.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), assay.ErrDamaged)
}

// invalid returns an error of kind assay.ErrInvalid with a description.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), assay.ErrInvalid)
}
