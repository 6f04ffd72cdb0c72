package local

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// models returns the folder of models in the shared data, or skips the test.
func models(t testing.TB) string {
	data := os.Getenv("ASSAY_TESTDATA")
	if data == "" {
		t.Skip("ASSAY_TESTDATA names no folder with the models gte-small and all-minilm-l6-v2")
	}
	return filepath.Join(data, "models")
}

// TestUnicode compares the tokenizer's handling of every character with the reference, by the
// SHA-256 of the results, each followed by a line feed.
func TestUnicode(t *testing.T) {
	each := func(do func(dst []byte, r rune) []byte) string {
		h := sha256.New()
		var line []byte
		for r := rune(0); r <= utf8.MaxRune; r++ {
			if utf8.ValidRune(r) {
				line = append(do(line[:0], r), '\n')
				h.Write(line)
			}
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	normalized := func(n normalizer) func(dst []byte, r rune) []byte {
		return func(dst []byte, r rune) []byte { return n.append(dst, string(r)) }
	}
	for name, test := range map[string]struct {
		do   func(dst []byte, r rune) []byte
		want string
	}{
		"clean":     {normalized(normalizer{cleanText: true}), "71170c6bb9439cd0457b8d9740152b7aed5d8b2443ccf6751442a73592522e44"},
		"chinese":   {normalized(normalizer{chineseChars: true}), "099fdc582e732f254c394436059d4600df4f0a3a122c231969846b09bf106792"},
		"accents":   {normalized(normalizer{stripAccents: true}), "1a9615da86c82660dd89515ffe048568232087782440b153d7725619df54fd1e"},
		"lowercase": {normalized(normalizer{lowercase: true}), "62a955092f4341ca841e803dc5d73e6df6210c1d7a8046780af533dc63ec2bd1"},
		"words": {func(dst []byte, r rune) []byte {
			text := []byte("a" + string(r) + "b")
			words(text, func(start, end int) { dst = append(append(dst, text[start:end]...), '|') })
			return dst
		}, "aed3f3a4ef6c1c9e1f745610cd91ad974324ed207566a71ab458845d7e0e81ff"},
	} {
		if got := each(test.do); got != test.want {
			t.Errorf("%s: the results have the checksum %s, want %s", name, got, test.want)
		}
	}
}

// tokenizers are the settings of the fixture, each for a number of its first lines.
var tokenizers = []struct {
	name  string
	lines int
	edit  func(j map[string]any)
}{
	{"uncased", 10_000, func(map[string]any) {}},
	{"cased", 1_000, func(j map[string]any) { set(j, "lowercase", false) }},
	{"lowercase with accents", 1_000, func(j map[string]any) { set(j, "strip_accents", false) }},
	{"bare", 1_000, func(j map[string]any) {
		set(j, "lowercase", false)
		set(j, "strip_accents", true)
		set(j, "clean_text", false)
		set(j, "handle_chinese_chars", false)
	}},
	{"added", 1_000, func(j map[string]any) {
		for _, a := range []map[string]any{
			{"content": "[MASK]", "id": 103, "lstrip": true}, {"content": "->", "id": 30522, "rstrip": true}, {"content": "the", "id": 1996, "single_word": true},
			{"content": "the lazy", "id": 30523}, {"content": "É", "id": 30524, "normalized": true}, {"content": "os.", "id": 30525, "normalized": true, "lstrip": true, "rstrip": true},
		} {
			for _, flag := range []string{"lstrip", "rstrip", "single_word", "normalized", "special"} {
				if a[flag] == nil {
					a[flag] = false
				}
			}
			j["added_tokens"] = append(slices.DeleteFunc(j["added_tokens"].([]any), func(b any) bool { return b.(map[string]any)["content"] == a["content"] }), any(a))
		}
	}},
}

func set(j map[string]any, key string, value any) { j["normalizer"].(map[string]any)[key] = value }

// TestTokens compares the tokenizer with the reference, Hugging Face tokenizers 0.23.3.
// testdata/tokens.bin contains, for each line, the 32-bit FNV-1a hash of its tokens (32 bits each,
// little-endian, including [CLS] and [SEP]). With ASSAY_DUMP the test writes the input for the
// reference instead: the lines and each tokenizer.json.
func TestTokens(t *testing.T) {
	lines := mixedLines(10_000)
	base := uncasedJSON(t)
	want, err := os.ReadFile(filepath.Join("testdata", "tokens.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range tokenizers {
		var j map[string]any
		if err := json.Unmarshal(base, &j); err != nil {
			t.Fatal(err)
		}
		setting.edit(j)
		data, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		if dump := os.Getenv("ASSAY_DUMP"); dump != "" {
			writeDump(t, filepath.Join(dump, setting.name+".tokenizer.json"), data)
			asked, _ := json.Marshal(lines[:setting.lines])
			writeDump(t, filepath.Join(dump, setting.name+".lines.json"), asked)
			continue
		}
		tokenizer, err := parseTokenizer(data, 30522+4)
		if err != nil {
			t.Fatal(err)
		}
		compareTokens(t, setting.name, tokenizer, lines[:setting.lines], want)
		if setting.name == "uncased" {
			fromText, err := readVocabulary(os.DirFS(filepath.Join("..", "embedded")), 30522)
			if err != nil {
				t.Fatal(err)
			}
			compareTokens(t, vocabularyFile, fromText, lines, want)
		}
		want = want[4*setting.lines:]
	}
}

func compareTokens(t *testing.T, name string, tokenizer *tokenizer, lines []string, want []byte) {
	wrong := 0
	for i, line := range lines {
		ids := tokenizer.single(nil, line)
		if hashTokens(ids) == binary.LittleEndian.Uint32(want[4*i:]) {
			continue
		}
		if wrong++; wrong <= 5 {
			t.Errorf("%s: line %d, %q, has the tokens %d, which are not the reference's", name, i, line, ids)
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d of %d lines differ from the reference", name, wrong, len(lines))
	}
}

// uncasedJSON returns the tokenizer.json of BERT's uncased vocabulary, which is the embedded
// encoder's.
func uncasedJSON(t *testing.T) []byte {
	data, err := os.ReadFile(filepath.Join("..", "embedded", vocabularyFile))
	if err != nil {
		t.Fatal(err)
	}
	vocabulary := map[string]int{}
	for line := range strings.Lines(string(data)) {
		vocabulary[strings.TrimRight(line, "\n")] = len(vocabulary)
	}
	var added []any
	for _, name := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		added = append(added, map[string]any{
			"id": vocabulary[name], "content": name, "special": true,
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
		})
	}
	whole, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": added,
		"normalizer":     map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil, "lowercase": true},
		"pre_tokenizer":  map[string]any{"type": "BertPreTokenizer"},
		"post_processor": map[string]any{"type": "BertProcessing", "cls": []any{"[CLS]", vocabulary["[CLS]"]}, "sep": []any{"[SEP]", vocabulary["[SEP]"]}},
		"model": map[string]any{
			"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

func writeDump(t *testing.T, name string, data []byte) {
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func hashTokens(ids []int32) uint32 {
	h := fnv.New32a()
	binary.Write(h, binary.LittleEndian, ids)
	return h.Sum32()
}
