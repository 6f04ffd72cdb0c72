package local

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// FuzzTokens checks that the tokens of any text are in the vocabulary and no more than the bytes of
// the text. An ideograph may become several words, but never more than its bytes, and bytes that
// are not UTF-8 count as U+FFFD.
func FuzzTokens(f *testing.F) {
	for _, line := range append(mixedLines(20), "", "\xff\xfe", "a\xc3", "[SEP", "[SEP]]") {
		f.Add(line)
	}
	t, err := readTokenizer(tiny(f, "tiny"), 123)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(test *testing.T, text string) {
		ids := t.single(nil, text)
		if len(ids) > 3*len(text)+2 {
			test.Errorf("%d tokens of %d bytes", len(ids), len(text))
		}
		for _, id := range ids {
			if id < 0 || id >= 123 {
				test.Errorf("token %d is not of the vocabulary", id)
			}
		}
		if !utf8.ValidString(text) {
			return
		}
		// Words do not span blanks.
		if twice := t.encode(nil, text+" "+text); len(twice) != 2*(len(ids)-2) {
			test.Errorf("%d tokens, the text twice has %d", len(ids)-2, len(twice))
		}
	})
}

// FuzzTokenizerJSON checks that any tokenizer file is rejected or yields tokens of the vocabulary.
func FuzzTokenizerJSON(f *testing.F) {
	good := map[string]any{
		"added_tokens":   []any{map[string]any{"id": 3, "content": "[SEP]", "rstrip": true}, map[string]any{"id": 4, "content": "É", "normalized": true}},
		"normalizer":     map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "lowercase": true},
		"pre_tokenizer":  map[string]any{"type": "BertPreTokenizer"},
		"post_processor": map[string]any{"type": "BertProcessing", "cls": []any{"[CLS]", 2}, "sep": []any{"[SEP]", 3}},
		"model": map[string]any{
			"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
			"vocab": map[string]int{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "a": 5, "##b": 6, "é": 7},
		},
	}
	data, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, "ab [SEP] É")
	f.Add([]byte(`{}`), "")
	f.Add([]byte(`{"model":{"type":"WordPiece"},"normalizer":null}`), "a")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		tokenizer, err := parseTokenizer(data, 8)
		if err != nil {
			if !errors.Is(err, assay.ErrDamaged) && !errors.Is(err, assay.ErrInvalid) {
				t.Errorf("error %v is of no kind", err)
			}
			return
		}
		for _, id := range tokenizer.single(nil, text) {
			if id < 0 || id >= 8 {
				t.Errorf("token %d is not of the vocabulary", id)
			}
		}
	})
}

// FuzzOpen checks that any config and weights are rejected, or give vectors of the stated
// dimensions or an error.
func FuzzOpen(f *testing.F) {
	files := tiny(f, "tiny")
	f.Add(files[configFile].Data, files[weightsFile].Data, []byte(`{"pooling":"cls"}`))
	f.Add(files[configFile].Data, files[weightsFile].Data[:1000], []byte(`{}`))
	f.Add([]byte(`{"model_type":"bert"}`), []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), []byte(`{`))
	f.Fuzz(func(t *testing.T, config, weights, note []byte) {
		files := fstest.MapFS{
			configFile: {Data: config}, weightsFile: {Data: weights}, noteFile: {Data: note}, vocabularyFile: files[vocabularyFile],
		}
		e, err := Open(context.Background(), files, Config{Name: "fuzzed"})
		if err != nil {
			if !errors.Is(err, assay.ErrDamaged) && !errors.Is(err, assay.ErrInvalid) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("error %v is of no kind", err)
			}
			return
		}
		vectors, err := e.Embed(context.Background(), 0, []string{"a river"})
		if err == nil && len(vectors[0]) != e.bert.Hidden {
			t.Errorf("a vector of %d numbers, want %d", len(vectors[0]), e.bert.Hidden)
		}
	})
}
