package ingest

import (
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
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
		d := parse.Document{Type: tt.typ, Text: tt.text, Structure: assay.Structure{Blocks: []parse.Block{{Kind: tt.kind, Start: 0, End: len(tt.text)}}}}
		if got := languageOf(d); got != tt.want {
			t.Errorf("%s: languageOf = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestDeclaredLanguage checks that a declared language counts if it is known, the sidecar's before
// the source's own, and that otherwise the language of the prose is used.
func TestDeclaredLanguage(t *testing.T) {
	const german = "Ein Server, der geordnet beendet wird, nimmt keine neuen Verbindungen an und wartet, bis die laufenden Anfragen beantwortet sind."
	tests := []struct{ own, sidecar, want string }{
		{"", "", "de"},
		{"fr-CA", "", "fr"},
		{"French", "", "de"},
		{"", "NL", "nl"},
		{"fr", "eng", "en"},
		{"fr", "Klingon", "fr"},
		{"", "Klingon", "de"},
	}
	for _, tt := range tests {
		parsed := parse.Document{Type: "text", Text: german, Structure: assay.Structure{Blocks: []parse.Block{{Kind: parse.Paragraph, End: len(german)}}}, Metadata: assay.Metadata{}}
		sidecar := assay.Metadata{}
		if tt.own != "" {
			parsed.Metadata[assay.MetaLanguage] = assay.StringValue(tt.own)
		}
		if tt.sidecar != "" {
			sidecar[assay.MetaLanguage] = assay.StringValue(tt.sidecar)
		}
		m := metadata(source.File{}, source.Content{}, parsed, sidecar, "")
		if got := m[assay.MetaLanguage].String; got != tt.want {
			t.Errorf("declared %q, in the sidecar %q: language %q, want %q", tt.own, tt.sidecar, got, tt.want)
		}
	}
}
