// Package relational implements what a store keeps in tables: documents, chunks, vectors, runs and
// their journals, ledgers, reviews and the audit log. Packages sqlite and postgres open the databases
// and say where tenants, locks and settings are.
//
// A tenant has two databases with tables of their own, one for its content and one for its runs, so
// that a change of the one never waits for the other. The system has a third one, with the tables of
// runs.
package relational

import "context"

// A Reader reads rows. Queries name parameters by ? or ?1, ?2 and so on, and call the functions that
// differ between databases by the Dialect. A caller that ends ctx gets its error.
type Reader interface {
	// Row scans the single row of query into dest. The error is sql.ErrNoRows if there is none.
	Row(ctx context.Context, query string, args []any, dest ...any) error

	// Each calls fn for each row of query with a function that scans the row's columns. fn may read
	// further rows.
	Each(ctx context.Context, query string, args []any, fn func(scan func(...any) error) error) error
}

// A Tx is a transaction in progress. It sees every change that was committed before it began, and no
// other transaction changes its database until it ends.
type Tx interface {
	Reader

	// Exec runs a statement and returns the number of rows that it changed. A statement that violates a
	// constraint may end the transaction.
	Exec(ctx context.Context, query string, args ...any) (int64, error)

	// ExecAll runs a statement once for each list of arguments, and returns the number of rows that all
	// of them changed.
	ExecAll(ctx context.Context, query string, args [][]any) (int64, error)

	// Insert runs an INSERT and returns the column number of the new row.
	Insert(ctx context.Context, query string, args ...any) (int64, error)
}

// A Database holds the tables of a tenant's content, of its runs, or of the system. It is safe for
// concurrent use. Its errors wrap one of assay's kinds if one fits.
type Database interface {
	// Row is Reader.Row in the last committed state.
	Row(ctx context.Context, query string, args []any, dest ...any) error

	// View calls fn with one committed state.
	View(ctx context.Context, fn func(Reader) error) error

	// Updater opens the means to change the database.
	Updater(ctx context.Context) (Updater, error)

	// Integrity checks what the database itself can check, calls report for each problem, and compares
	// the definitions of its tables with those of this program.
	Integrity(ctx context.Context, s Reader, report func(format string, args ...any)) error

	Dialect() Dialect

	// Name names the database in errors.
	Name() string

	Close() error
}

// An Updater changes a database, one transaction at a time.
type Updater interface {
	// Update runs fn in a transaction, which is durable when Update returns nil. On any error nothing
	// is changed. ctx is ignored once the commit has begun.
	Update(ctx context.Context, fn func(Tx) error) error

	// Turn waits until no other goroutine of this process uses the updater, and calls fn with an Updater
	// that does not wait for that.
	Turn(ctx context.Context, fn func(Updater) error) error

	Close() error
}

// A Dialect writes the expressions that differ between databases.
type Dialect interface {
	// List is a table with the columns key, from 0, and value of the JSON array of strings in a
	// parameter.
	List(parameter string) string

	// Member is the member of a JSON object if it is a string, and the empty string otherwise.
	Member(object, key string) string

	// Unhex is the bytes of a hexadecimal text.
	Unhex(text string) string

	// Least is the lesser of two integers.
	Least(a, b string) string

	// Array is the JSON array of a query's single column.
	Array(query, column string) string

	// Newest is the number of the newest row that a table ever had, 0 if none.
	Newest(table string) string
}

// A Place is where a tenant's databases are, and what its store keeps beside them.
type Place interface {
	// Name names the place in errors.
	Name() string

	// LockWriter takes the lock of the content's writer. The error is assay.ErrLocked if it is taken,
	// and names the process that holds it. The updater stops working when the lock is lost.
	LockWriter(ctx context.Context) (u Updater, release func() error, err error)

	// LockKept takes the lock that is needed to drop what a copy of the tenant may need. ok is false
	// while the tenant is copied.
	LockKept(ctx context.Context) (unlock func() error, ok bool, err error)

	// Leases is the folder of the files that processes lock while they hold leases. All processes that
	// use the tenant on this machine share it.
	Leases() string
}
