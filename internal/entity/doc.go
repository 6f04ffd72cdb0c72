// Package entity finds what a passage names: people, places, works, organisations,
// identifiers of code, and what its title and headings stand for. It reads names off
// their form and knows no model and no list of names. What it finds are keys, under
// which the wordings of one name meet: "The Beatles'" and "Beatles", "os.Open" and
// "`os.Open`".
//
// [Finder] is for many passages one after the other. What it finds in a passage
// depends on nothing but the passage.
//
// Names are told by their capitals. In languages that capitalise all nouns (German,
// Luxembourgish) one capitalised word counts only where neither an article nor an
// adjective stands before it. In scripts without capitals there are only titles,
// quotations and Latin words.
package entity

// Version names what this package makes of a passage. It grows with every change
// that gives some passage other entities, so that what was indexed before is indexed
// again.
const Version = 2
