package ingest

import (
	"testing"

	"github.com/assay-rag/assay/parse"
)

func TestLanguage(t *testing.T) {
	english := "A server that is shut down gracefully stops taking new connections and waits until the requests under way have been answered."
	german := "Ein Server, der geordnet beendet wird, nimmt keine neuen Verbindungen an und wartet, bis die laufenden Anfragen beantwortet sind."
	tests := []struct {
		name string
		typ  string
		kind parse.BlockKind
		text string
		want string
	}{
		{"english", "text", parse.Paragraph, english, "en"},
		{"german", "markdown", parse.ListItem, german, "de"},
		{"too short", "text", parse.Paragraph, "A short line of text.", ""},
		{"code", "markdown", parse.Code, english, ""},
		{"other source", "source", parse.Paragraph, english, ""},
		{"nothing", "text", parse.Paragraph, "", ""},
	}
	for _, tt := range tests {
		d := parse.Document{Type: tt.typ, Text: tt.text, Blocks: []parse.Block{{Kind: tt.kind, Start: 0, End: len(tt.text)}}}
		if got := languageOf(d); got != tt.want {
			t.Errorf("%s: languageOf = %q, want %q", tt.name, got, tt.want)
		}
	}
}
