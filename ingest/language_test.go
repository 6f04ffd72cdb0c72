package ingest

import (
	"strings"
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
		{"japanese", "html", parse.Paragraph, strings.Repeat("サーバーを停止すると、新しい接続は受け付けられません。", 5), "ja"},
		{"persian", "text", parse.Paragraph, strings.Repeat("سرور پس از توقف هیچ اتصال تازه\u200cای را نمی\u200cپذیرد و منتظر پاسخ می\u200cماند. ", 4), "fa"},
		{"too short", "text", parse.Paragraph, "A short line of text.", ""},
		{"code", "markdown", parse.Code, english, ""},
		{"other source", "source", parse.Paragraph, english, ""},
		{"checksums", "text", parse.Paragraph, strings.Repeat("golang.org/x/tools v0.33.0 h1:4qz2S3zmRxbGIhDIAgjxvFutSvH5EfnsYrRBj0UI0bc=\n", 5), ""},
		{"a key", "text", parse.Paragraph, strings.Repeat("MIIBijCCATGgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDEwlwb2xpY3kg\n", 5), ""},
		{"nothing", "text", parse.Paragraph, "", ""},
	}
	for _, tt := range tests {
		d := parse.Document{Type: tt.typ, Text: tt.text, Blocks: []parse.Block{{Kind: tt.kind, Start: 0, End: len(tt.text)}}}
		if got := language(d); got != tt.want {
			t.Errorf("%s: language = %q, want %q", tt.name, got, tt.want)
		}
	}
}
