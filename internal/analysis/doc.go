// Package analysis turns text into the terms that are indexed and searched. It
// treats prose and code alike: words are lower-cased, freed of accents and
// stemmed; identifiers match whole and in parts.
//
//	os.Open            os.open, os, open
//	file_name          file_name, file, name
//	ReadHeaderTimeout  readheadertimeout, read, header, timeout
//	go1.22             go1.22, go, 1.22
//	HTTP/2             http/2, http, 2
//	C++                c++, c
//	E1042              e1042
//	state-of-the-art   state, art (of and the are stop words)
//	1,000              1000, 1, 000
//	U.S.               us
//	日本語              日本, 本語, and each character
//
// [Tokens] is the simple form. An [Analyzer] does the same without allocating
// for words it has met before, and is what indexing uses. The package knows
// nothing of scores, fields or documents.
package analysis
