//go:build !sqlite_fts5

package main

// buildFlags are what this program was built with.
const buildFlags = ""

// sqliteDrivers are the SQLites to compare with: the one in Go, which builds
// everywhere. With "go run -tags sqlite_fts5 ." there is one in C beside it.
func sqliteDrivers() []string { return []string{"sqlite"} }
