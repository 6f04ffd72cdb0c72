// Package analysis turns text into the terms that are indexed and searched. It treats prose and
// code alike. Words are lower-cased, stripped of accents and stemmed. Identifiers match as a whole
// and in parts.
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
// [Tokens] is the simple form. An [Analyzer] does the same without allocating for words it has met
// before, and is used for indexing. The package does not deal with scores, fields or documents.
package analysis
