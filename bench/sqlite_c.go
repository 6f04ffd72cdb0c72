//go:build sqlite_fts5

package main

import (
	sqlitevec "github.com/asg017/sqlite-vec-go-bindings/cgo"
	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3", SQLite in C
)

// buildFlags are the flags that this program was built with.
const buildFlags = "-tags sqlite_fts5 "

// sqliteDrivers returns the SQLite drivers to compare: the one in Go and the one in C.
func sqliteDrivers() []string {
	sqlitevec.Auto()
	return []string{"sqlite", "sqlite3"}
}
