package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-rag/assay"
)

// kinds are the error kinds that an error of this package may already wrap.
var kinds = []error{
	assay.ErrInvalid, assay.ErrNotFound, assay.ErrLocked, assay.ErrLeased, assay.ErrReadOnly,
	assay.ErrFull, assay.ErrNewer, assay.ErrForeign, assay.ErrDamaged, assay.ErrStopped,
}

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

// kindOf maps an error from SQLite or the system to one of assay's kinds. It returns nil if none
// fits or if err wraps one already.
func kindOf(err error) error {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return nil
		}
	}
	if code, ok := resultCode(err); ok {
		if code == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such table") {
			return assay.ErrNotFound // the tenant was deleted, see hideTables
		}
		return kindOfCode(code)
	}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return assay.ErrReadOnly
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return assay.ErrFull
	}
	return nil
}

func kindOfCode(code int) error {
	switch code {
	case sqlite3.SQLITE_IOERR_SHMSIZE: // the shared-memory file of the WAL readers could not grow
		return assay.ErrFull
	case sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA:
		return assay.ErrDamaged
	}
	switch code & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
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
