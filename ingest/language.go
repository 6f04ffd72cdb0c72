package ingest

import (
	"strings"
	"unicode"

	"github.com/abadojack/whatlanggo"

	"github.com/assay-rag/assay/parse"
)

// A language is told from this many bytes of prose, or not at all from fewer
// letters than minLetters: trigrams of short texts mislead.
const (
	maxSampleBytes = 4 << 10
	minLetters     = 80
)

// language returns the ISO 639-1 code of the language that a document's prose is
// written in, or "" where that is not certain. Of source code it is that of the
// comments. Code, tables and headings do not count.
func language(d parse.Document) string {
	sample, letters := prose(d)
	if letters < minLetters {
		return ""
	}
	info := whatlanggo.Detect(sample)
	if !info.IsReliable() {
		return ""
	}
	return info.Lang.Iso6391()
}

// prose returns the beginning of a document's running text.
func prose(d parse.Document) (sample string, letters int) {
	var b strings.Builder
	for _, block := range d.Blocks {
		if block.Kind != parse.Paragraph && block.Kind != parse.ListItem {
			continue
		}
		text := d.Text[block.Start:block.End]
		if room := maxSampleBytes - b.Len(); len(text) > room {
			text = strings.ToValidUTF8(text[:room], "")
		}
		b.WriteString(text)
		b.WriteByte('\n')
		if b.Len() >= maxSampleBytes {
			break
		}
	}
	for _, r := range b.String() {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return b.String(), letters
}
