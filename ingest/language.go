package ingest

import (
	"strings"

	"github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/parse"
)

// A language is told from this many bytes of prose. On 1,100 documents of Go's
// source tree a sample four times as long changed one answer.
const maxSampleBytes = 1 << 10

// typeSource is what parse calls source code that it reads by comments and blank
// lines only.
const typeSource = "source"

// languageOf returns the ISO 639-1 code of the language that a document's prose is
// written in, or "" where that is not certain. Code, tables and headings do not
// count. Of Go it is the language of its comments; of other source code it is
// not told, because there code cannot be kept out of the sample: of 60 files of
// C and assembly in Go's runtime three were called Danish or Portuguese.
func languageOf(d parse.Document) string {
	if d.Type == typeSource {
		return ""
	}
	return language.Detect(prose(d))
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
