// Package entity finds the names in a passage: people, places, works, organisations, identifiers of
// code, and the subjects of its title and headings. It recognizes names by their form, without a
// model or a list of names. It returns keys that different spellings of a name share: "The
// Beatles'" and "Beatles", "os.Open" and "`os.Open`".
//
// A [Finder] is meant for many passages in sequence. Its results for a passage depend only on that
// passage.
//
// Names are recognized by capitals. In languages that capitalise all nouns (German, Luxembourgish)
// a single capitalised word counts only if neither an article nor an adjective precedes it. In
// scripts without capitals only titles, quotations and Latin words are found.
package entity

// Version identifies the entities that this package finds. It grows with every change that gives
// some passage other entities, so that existing passages are indexed again.
const Version = 2
