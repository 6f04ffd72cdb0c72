package ingest

import (
	"strings"
	"unicode"

	"github.com/abadojack/whatlanggo"

	"github.com/assay-rag/assay/parse"
)

// A language is told from this many bytes of prose, or not at all from fewer
// letters than minLetters: trigrams of short texts mislead. On 1,100 documents
// of Go's source tree a sample four times as long changed one answer.
const (
	maxSampleBytes = 1 << 10
	minLetters     = 80
)

// typeSource is what parse calls source code that it reads by comments and blank
// lines only.
const typeSource = "source"

// language returns the ISO 639-1 code of the language that a document's prose is
// written in, or "" where that is not certain. Code, tables and headings do not
// count. Of Go it is the language of its comments; of other source code it is
// not told, because there code cannot be kept out of the sample: of 60 files of
// C and assembly in Go's runtime three were called Danish or Portuguese.
func language(d parse.Document) string {
	if d.Type == typeSource {
		return ""
	}
	sample := prose(d)
	if !isProse(sample) {
		return ""
	}
	info := whatlanggo.Detect(sample)
	if !info.IsReliable() {
		return ""
	}
	return iso6391(info.Lang)
}

// iso6391 fills in what the library's own table lacks.
func iso6391(l whatlanggo.Lang) string {
	if l == whatlanggo.Pes {
		return "fa"
	}
	return l.Iso6391()
}

// prose returns a sample of a document's running text: its paragraphs from the
// beginning, then list items, which often are but names.
func prose(d parse.Document) string {
	var b strings.Builder
	for _, kind := range []parse.BlockKind{parse.Paragraph, parse.ListItem} {
		for _, block := range d.Blocks {
			if block.Kind != kind || b.Len() >= maxSampleBytes {
				continue
			}
			text := d.Text[block.Start:block.End]
			if room := maxSampleBytes - b.Len(); len(text) > room {
				text = strings.ToValidUTF8(text[:room], "")
			}
			b.WriteString(text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// isProse reports whether a sample has enough letters and is words for the most
// part: checksums and keys are not, which trigrams take for some language.
func isProse(sample string) bool {
	letters, words, fields := 0, 0, 0
	for field := range strings.FieldsSeq(sample) {
		fields++
		before, plain := letters, true
		for _, r := range field {
			if unicode.IsLetter(r) {
				letters++
			} else if !unicode.IsMark(r) && !unicode.IsPunct(r) {
				plain = false
			}
		}
		if plain && letters > before {
			words++
		}
	}
	return letters >= minLetters && 2*words >= fields
}
