package ingest

import (
	"strings"

	"github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/parse"
)

// maxSampleBytes is the size of the prose sample for language detection. On 1,100 documents of Go's
// source tree a sample four times as large changed one result.
const maxSampleBytes = 1 << 10

// typeSource is the type that parse gives to source code that it splits only by comments and blank
// lines.
const typeSource = "source"

// languageOf returns the ISO 639-1 code of the language of a document's prose, or "" if it is
// uncertain. Code, tables and headings do not count. For Go it is the language of the comments. For
// other source code it is "", because code cannot be kept out of the sample: of 60 files of C and
// assembly in Go's runtime, three were detected as Danish or Portuguese.
func languageOf(d parse.Document) string {
	if d.Type == typeSource {
		return ""
	}
	return language.Detect(prose(d))
}

// prose returns a sample of a document's running text: paragraphs from the beginning, then list
// items, which are often only names.
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
