package sqlite

import (
	"errors"
	"fmt"
	"strings"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/internal/relational"
)

// wrap adds the operation that failed to err, and an error kind if it has none yet. It returns nil
// if err is nil.
func wrap(err error, format string, args ...any) error {
	return relational.Wrap(classify(err), format, args...)
}

// classify adds one of assay's kinds to an error from SQLite, if one fits.
func classify(err error) error {
	code, ok := resultCode(err)
	if !ok {
		return err
	}
	kind := kindOfCode(code)
	if code == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such table") {
		kind = assay.ErrNotFound // the tenant was deleted, see hideTables
	}
	if kind == nil || errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

func kindOfCode(code int) error {
	switch code {
	case sqlite3.SQLITE_IOERR_SHMSIZE: // the shared-memory file of the WAL readers could not grow
		return assay.ErrFull
	case sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA:
		return assay.ErrDamaged
	}
	switch code & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT: // rows that contradict each other
		return assay.ErrDamaged
	case sqlite3.SQLITE_FULL:
		return assay.ErrFull
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return assay.ErrReadOnly
	case sqlite3.SQLITE_TOOBIG:
		return assay.ErrInvalid
	}
	return nil
}

// resultCode returns SQLite's extended result code.
func resultCode(err error) (code int, ok bool) {
	var e *driver.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.Code(), true
}

// isBusy reports whether another connection held a lock.
func isBusy(err error) bool {
	code, ok := resultCode(err)
	return ok && code&0xff == sqlite3.SQLITE_BUSY
}

// damaged returns an error of kind assay.ErrDamaged with a description.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), assay.ErrDamaged)
}

// invalid returns an error of kind assay.ErrInvalid with a description.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), assay.ErrInvalid)
}
