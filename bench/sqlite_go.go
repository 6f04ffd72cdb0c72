//go:build !sqlite_fts5

package main

// buildFlags are the flags that this program was built with.
const buildFlags = ""

// sqliteDrivers returns the SQLite drivers to compare: the one in Go, which builds everywhere. "go
// run -tags sqlite_fts5 ." adds the one in C.
func sqliteDrivers() []string { return []string{"sqlite"} }
