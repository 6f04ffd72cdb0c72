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
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assay-rag/assay"
)

// tiny returns the files of a model of the tests, to be changed.
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

// TestOpenRefuses holds what is wrong with a folder to its message and kind.
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
		"another architecture": {config("model_type", "xlm-roberta"), assay.ErrInvalid, `config.json: the architecture "xlm-roberta"`},
		"a reranker":           {config("architectures", []string{classifier}), assay.ErrInvalid, "config.json: a BertForSequenceClassification"},
		"another activation":   {config("hidden_act", "relu"), assay.ErrInvalid, `"relu"`},
		"relative positions":   {config("position_embedding_type", "relative_key"), assay.ErrInvalid, "relative_key"},
		"no layers":            {config("num_hidden_layers", 0), assay.ErrDamaged, "num_hidden_layers is 0"},
		"too many layers":      {config("num_hidden_layers", 3), assay.ErrDamaged, "model.safetensors: tensor encoder.layer.2"},
		"too few layers":       {config("num_hidden_layers", 1), assay.ErrDamaged, "model.safetensors: tensor encoder.layer.1"},
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
		"vocabulary of others": {file(vocabularyFile, "a\nb\n"), assay.ErrDamaged, `does not hold "[UNK]"`},
		"tokenizer of others":  {file(tokenizerFile, `{"model":{"type":"Unigram"}}`), assay.ErrInvalid, `"Unigram"`},
		"truncated weights": {func(t *testing.T, files fstest.MapFS) {
			files[weightsFile].Data = files[weightsFile].Data[:len(files[weightsFile].Data)-1]
		}, assay.ErrDamaged, weightsFile},
		"another step":    {file("modules.json", `[{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]`), assay.ErrInvalid, "modules.json: a step of type Dense"},
		"outside":         {file("modules.json", `[{"path":"../../etc","type":"Pooling"}]`), assay.ErrDamaged, "modules.json"},
		"no pooling":      {file("modules.json", `[{"path":"1_Pooling","type":"Pooling"}]`), fs.ErrNotExist, "1_Pooling/config.json"},
		"another pooling": {file("1_Pooling/config.json", `{"pooling_mode_max_tokens":true}`), assay.ErrInvalid, "1_Pooling/config.json: the pooling max_tokens"},
		"odd note":        {file(noteFile, `{"pooling":"median"}`), assay.ErrInvalid, `assay.json: the pooling "median"`},
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
		"an encoder":   {"tiny", nil, "a BertModel, want BertForSequenceClassification"},
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

// TestNames holds the name of a model to what makes its vectors.
func TestNames(t *testing.T) {
	data := tiny(t, "tiny")[weightsFile].Data
	sum := sha256.Sum256(data)
	whole := hex.EncodeToString(sum[:])
	for name, test := range map[string]struct {
		config Config
		files  map[string]string
		want   string
	}{
		"computed":  {Config{Name: "tiny"}, nil, "tiny@" + whole[:8] + "/32"},
		"known":     {Config{Name: "small", SHA256: strings.Repeat("ab", 32)}, nil, "small@abababab/32"},
		"in memory": {Config{Name: "tiny", Weights: data}, nil, "tiny@" + whole[:8] + "/32"},
		"cls":       {Config{Name: "bge"}, map[string]string{"1_Pooling/config.json": `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}`}, "bge@" + whole[:8] + "/32-cls"},
		"note":      {Config{Name: "e5"}, map[string]string{noteFile: `{"query":"query: ","passage":"passage: "}`}, "e5@" + whole[:8] + "/32-pf152"},
	} {
		files := tiny(t, "tiny")
		if test.config.Weights != nil {
			delete(files, weightsFile)
		}
		for file, text := range test.files {
			files[file] = &fstest.MapFile{Data: []byte(text)}
		}
		e, err := Open(t.Context(), files, test.config)
		if err != nil {
			t.Fatal(err)
		}
		if e.Model() != test.want {
			t.Errorf("%s: the model's name is %s, want %s", name, e.Model(), test.want)
		}
	}
	e, err := OpenDir(t.Context(), filepath.Join("testdata", "tiny"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "tiny@" + whole[:8] + "/32"; e.Model() != want {
		t.Errorf("the folder's model is %s, want %s", e.Model(), want)
	}
}

// TestSettings holds what other files say to what the encoder does.
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
