//go:build !race

package parseworker

// raceEnabled reports whether the race detector is on.
const raceEnabled = false
