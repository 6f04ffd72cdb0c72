package local

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedTokens maps files to the SHA-256 of the reference's tokens of all their texts. A text is
// title, line feed and text; its tokens have 32 bits each, little-endian, including [CLS] and
// [SEP].
var sharedTokens = map[string]string{
	"corpora/debian-policy.jsonl":               "ff51a988c58bd01a14fc02c83846588cdb5e16a3c678f47fce342ee784771667",
	"corpora/git-2.39.jsonl":                    "a72e90bb6893248198eec31648d68745135cdfd0a15498c263b92573ad49c9df",
	"corpora/golang-website.jsonl":              "094ee476d389443ba51d8e39725a5e0936ee2f47c8030758c1b01935d68a2293",
	"corpora/sqlite3.jsonl":                     "742ee54080c2f59bbbf7179bfbefcd51d1e5f82fb65c900f14e1386c421bb122",
	"retrieval/anthropic-docs/corpus.jsonl":     "0ec41c044da4b55b96da3da61083670aa8a08bf964a2a19cc895a3582d916496",
	"retrieval/clapnq-answerable/corpus.jsonl":  "54d2d39a56f68312e48bee2974eb437bad3bbbb1e30c30e62ebda804c3d3234f",
	"retrieval/hotpotqa-train100/corpus.jsonl":  "8bb9794c93c55bec669bc33ab159b06d98fe71dd62cf5375b666e7bfdf0969e2",
	"retrieval/mtrag-un-reference/corpus.jsonl": "ff3034e01f500f75cdb993108949f35fbe74b1f262aa603c00238ea9f140ee77",
	"retrieval/musique-train100/corpus.jsonl":   "ff4ac3beca7a7b495d9b563529a7ac55af922eaf5ae6d779c7fd3b2d4c8f237c",
	"retrieval/pubmedqa-1000/corpus.jsonl":      "374bdb89a1e0f865eea56f81e424a882faf0576b8db65069af05c092fc956be8",
	"retrieval/scifact-train/corpus.jsonl":      "7f4bfddbb818aa07424e088a05b9f458ca54576b92065f234fd2ba93f7aa2880",
	"retrieval/xquad-de/corpus.jsonl":           "b6e9f4253817a614f470dd9e6b32c56d808116e0f9ab7dc08cd40d8d02dcd7be",
	"retrieval/xquad-en/corpus.jsonl":           "320197875304df78f798ce02750c39273cab020c0f7721a2de5ed6839f1be80e",
}

// TestSharedTokens compares the 7.5 million tokens of documents in English and German, and of code,
// with the reference.
func TestSharedTokens(t *testing.T) {
	e, err := readTokenizer(os.DirFS(filepath.Join(models(t), "gte-small")), 30522)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range sharedTokens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && !strings.Contains(name, "xquad") {
				t.Skip("German and English suffice")
			}
			file, err := os.Open(filepath.Join(os.Getenv("ASSAY_TESTDATA"), "data", filepath.FromSlash(name)))
			if err != nil {
				t.Skip(err)
			}
			defer file.Close()
			h := sha256.New()
			var ids []int32
			for d := json.NewDecoder(bufio.NewReader(file)); d.More(); {
				var text struct{ Title, Text string }
				if err := d.Decode(&text); err != nil {
					t.Fatal(err)
				}
				ids = e.single(ids[:0], text.Title+"\n"+text.Text)
				binary.Write(h, binary.LittleEndian, ids)
			}
			if got := hex.EncodeToString(h.Sum(nil)); got != want {
				t.Errorf("the tokens have the checksum %s, want %s", got, want)
			}
		})
	}
}
