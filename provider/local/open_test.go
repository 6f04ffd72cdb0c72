package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assay-rag/assay"
)

// tiny returns the files of a test model, which the caller may change.
func tiny(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, file := range []string{configFile, vocabularyFile, weightsFile} {
		data, err := os.ReadFile(filepath.Join("testdata", name, file))
		if err != nil {
			t.Fatal(err)
		}
		files[file] = &fstest.MapFile{Data: data}
	}
	return files
}

// reconfigure changes config.json.
func reconfigure(t testing.TB, files fstest.MapFS, change map[string]any) {
	t.Helper()
	config := map[string]any{}
	if err := json.Unmarshal(files[configFile].Data, &config); err != nil {
		t.Fatal(err)
	}
	maps.Copy(config, change)
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	files[configFile] = &fstest.MapFile{Data: data}
}

// TestOpenRefuses checks the message and kind of the error for each defect of a folder.
func TestOpenRefuses(t *testing.T) {
	config := func(key string, value any) func(t *testing.T, files fstest.MapFS) {
		return func(t *testing.T, files fstest.MapFS) { reconfigure(t, files, map[string]any{key: value}) }
	}
	file := func(name, text string) func(t *testing.T, files fstest.MapFS) {
		return func(t *testing.T, files fstest.MapFS) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	}
	gone := func(name string) func(t *testing.T, files fstest.MapFS) {
		return func(t *testing.T, files fstest.MapFS) { delete(files, name) }
	}
	for name, test := range map[string]struct {
		spoil   func(t *testing.T, files fstest.MapFS)
		kind    error
		message string
	}{
		"another architecture": {config("model_type", "xlm-roberta"), assay.ErrInvalid, `config.json: architecture "xlm-roberta"`},
		"a reranker":           {config("architectures", []string{classifier}), assay.ErrInvalid, "config.json: architecture BertForSequenceClassification"},
		"another activation":   {config("hidden_act", "relu"), assay.ErrInvalid, `"relu"`},
		"relative positions":   {config("position_embedding_type", "relative_key"), assay.ErrInvalid, "relative_key"},
		"no layers":            {config("num_hidden_layers", 0), assay.ErrDamaged, "num_hidden_layers is 0"},
		"too many layers":      {config("num_hidden_layers", 3), assay.ErrDamaged, "model.safetensors: tensor encoder.layer.2"},
		"too few layers":       {config("num_hidden_layers", 1), assay.ErrDamaged, "model.safetensors: unexpected tensor encoder.layer.1"},
		"a cut vocabulary":     {file(vocabularyFile, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n"), assay.ErrDamaged, "vocabulary has 6 tokens"},
		"odd heads":            {config("num_attention_heads", 5), assay.ErrDamaged, "5 heads"},
		"another width":        {config("hidden_size", 64), assay.ErrDamaged, "model.safetensors: tensor "},
		"a smaller vocabulary": {config("vocab_size", 100), assay.ErrDamaged, "vocab.txt: "},
		"a larger vocabulary":  {config("vocab_size", 200), assay.ErrDamaged, "word_embeddings"},
		"no config":            {gone(configFile), fs.ErrNotExist, configFile},
		"no weights":           {gone(weightsFile), fs.ErrNotExist, weightsFile},
		"no vocabulary":        {gone(vocabularyFile), fs.ErrNotExist, vocabularyFile},
		"config of no JSON":    {file(configFile, "{"), assay.ErrDamaged, configFile},
		"weights of a page":    {file(weightsFile, "<!DOCTYPE html><html>"), assay.ErrDamaged, weightsFile},
		"weights of nothing":   {file(weightsFile, ""), assay.ErrDamaged, weightsFile},
		"vocabulary twice":     {file(vocabularyFile, "[UNK]\na\na\n"), assay.ErrDamaged, `"a"`},
		"vocabulary of others": {file(vocabularyFile, "a\nb\n"), assay.ErrDamaged, `lacks "[UNK]"`},
		"tokenizer of others":  {file(tokenizerFile, `{"model":{"type":"Unigram"}}`), assay.ErrInvalid, `"Unigram"`},
		"truncated weights": {func(t *testing.T, files fstest.MapFS) {
			files[weightsFile].Data = files[weightsFile].Data[:len(files[weightsFile].Data)-1]
		}, assay.ErrDamaged, weightsFile},
		"another step":    {file("modules.json", `[{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]`), assay.ErrInvalid, "modules.json: a step of type Dense"},
		"outside":         {file("modules.json", `[{"path":"../../etc","type":"Pooling"}]`), assay.ErrDamaged, "modules.json"},
		"no pooling":      {file("modules.json", `[{"path":"1_Pooling","type":"Pooling"}]`), fs.ErrNotExist, "1_Pooling/config.json"},
		"another pooling": {file("1_Pooling/config.json", `{"pooling_mode_max_tokens":true}`), assay.ErrInvalid, "1_Pooling/config.json: pooling max_tokens"},
		"odd note":        {file(noteFile, `{"pooling":"median"}`), assay.ErrInvalid, `assay.json: pooling "median"`},
		"too long a note": {file(noteFile, `{"max_tokens":65}`), assay.ErrInvalid, "assay.json: max_tokens is 65"},
	} {
		t.Run(name, func(t *testing.T) {
			files := tiny(t, "tiny")
			test.spoil(t, files)
			_, err := Open(t.Context(), files, Config{Name: "spoilt"})
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), "spoilt") {
				t.Errorf("error %q, want one of kind %q with %q", err, test.kind, test.message)
			}
		})
	}
}

func TestOpenRerankerRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		model   string
		change  map[string]any
		message string
	}{
		"an encoder":   {"tiny", nil, "architecture BertModel, want BertForSequenceClassification"},
		"a classifier": {"tiny-reranker", map[string]any{"id2label": map[string]string{"0": "no", "1": "yes"}}, "2 labels"},
		"XLM-RoBERTa":  {"tiny-reranker", map[string]any{"model_type": "xlm-roberta", "architectures": []string{"XLMRobertaForSequenceClassification"}}, "XLMRobertaForSequenceClassification"},
	} {
		files := tiny(t, test.model)
		reconfigure(t, files, test.change)
		_, err := OpenReranker(t.Context(), files, Config{Name: "spoilt"})
		if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: error %q, want %q", name, err, test.message)
		}
	}
}

// TestNames checks that a model's name identifies its vectors: the same files have the same name in
// any folder, and each changed file changes the name.
func TestNames(t *testing.T) {
	data := tiny(t, "tiny")[weightsFile].Data
	sum := sha256.Sum256(data)
	name := func(c Config, change func(fstest.MapFS)) string {
		t.Helper()
		files := tiny(t, "tiny")
		if c.Weights != nil {
			delete(files, weightsFile)
		}
		if change != nil {
			change(files)
		}
		e, err := Open(t.Context(), files, c)
		if err != nil {
			t.Fatal(err)
		}
		return e.Model()
	}
	plain := name(Config{Name: "tiny"}, nil)
	if !regexp.MustCompile(`^tiny@[0-9a-f]{8}/32$`).MatchString(plain) {
		t.Errorf("the model's name is %s", plain)
	}
	e, err := OpenDir(t.Context(), filepath.Join("testdata", "tiny"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	for how, got := range map[string]string{
		"with a known sum": name(Config{Name: "tiny", SHA256: hex.EncodeToString(sum[:])}, nil),
		"in memory":        name(Config{Name: "tiny", Weights: data}, nil),
		"in a folder":      e.Model(),
	} {
		if got != plain {
			t.Errorf("%s the model's name is %s, want %s", how, got, plain)
		}
	}
	if got := name(Config{Name: "tiny", Model: "known/32"}, nil); got != "known/32" {
		t.Errorf("the name that was given became %s", got)
	}
	add := func(file, text string) func(fstest.MapFS) {
		return func(files fstest.MapFS) { files[file] = &fstest.MapFile{Data: []byte(text)} }
	}
	names := map[string]string{plain: "as it is"}
	for what, change := range map[string]func(fstest.MapFS){
		"other weights": func(files fstest.MapFS) { other(t, files) },
		"epsilon":       func(files fstest.MapFS) { reconfigure(t, files, map[string]any{"layer_norm_eps": 1e-5}) },
		"heads":         func(files fstest.MapFS) { reconfigure(t, files, map[string]any{"num_attention_heads": 8}) },
		"pooling":       add("1_Pooling/config.json", `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}`),
		"prompts":       add(noteFile, `{"query":"query: ","passage":"passage: "}`),
		"limit":         add("sentence_bert_config.json", `{"max_seq_length":32}`),
	} {
		got := name(Config{Name: "tiny"}, change)
		if of, taken := names[got]; taken {
			t.Errorf("%s: the model's name is %s, which it is also %s", what, got, of)
		}
		names[got] = what
	}
}

// other changes a weight.
func other(t *testing.T, files fstest.MapFS) {
	t.Helper()
	data := slices.Clone(files[weightsFile].Data)
	data[len(data)-4] ^= 1
	files[weightsFile] = &fstest.MapFile{Data: data}
}

// TestSettings checks that the files' settings apply to the encoder.
func TestSettings(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  settings
	}{
		"none": {nil, settings{maxTokens: 64}},
		"modules": {map[string]string{
			"modules.json":        `[{"path":"","type":"sentence_transformers.models.Transformer"},{"path":"7_Pool","type":"sentence_transformers.models.Pooling"},{"path":"2","type":"sentence_transformers.models.Normalize"}]`,
			"7_Pool/config.json":  `{"word_embedding_dimension":32,"pooling_mode_cls_token":true}`,
			"assay.json":          `{"languages":["de","en"],"max_tokens":50}`,
			"config_unknown.json": `{`,
		}, settings{cls: true, maxTokens: 50, languages: []string{"de", "en"}}},
		"prompts": {map[string]string{
			"config_sentence_transformers.json": `{"prompts":{"query":"q: ","document":"d: "}}`,
			"sentence_bert_config.json":         `{"max_seq_length":48}`,
		}, settings{query: "q: ", passage: "d: ", maxTokens: 48}},
		"note before others": {map[string]string{
			"config_sentence_transformers.json": `{"prompts":{"query":"q: ","document":"d: "}}`,
			"1_Pooling/config.json":             `{"pooling_mode_cls_token":true}`,
			"sentence_bert_config.json":         `{"max_seq_length":48}`,
			noteFile:                            `{"query":"","pooling":"mean","max_tokens":64}`,
		}, settings{passage: "d: ", maxTokens: 64}},
	} {
		files := fstest.MapFS{}
		for file, text := range test.files {
			files[file] = &fstest.MapFile{Data: []byte(text)}
		}
		got, err := readSettings(files, 64)
		if err != nil {
			t.Fatal(err)
		}
		if !equalSettings(got, test.want) {
			t.Errorf("%s: settings %+v, want %+v", name, got, test.want)
		}
	}
}

func equalSettings(a, b settings) bool {
	x, _ := json.Marshal([]any{a.cls, a.query, a.passage, a.maxTokens, a.languages})
	y, _ := json.Marshal([]any{b.cls, b.query, b.passage, b.maxTokens, b.languages})
	return bytes.Equal(x, y)
}
