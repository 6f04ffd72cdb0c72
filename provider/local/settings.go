package local

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// architecture contains the relevant fields of config.json.
type architecture struct {
	Architectures []string       `json:"architectures"`
	ModelType     string         `json:"model_type"`
	Activation    string         `json:"hidden_act"`
	PositionType  string         `json:"position_embedding_type"`
	Hidden        int            `json:"hidden_size"`
	Layers        int            `json:"num_hidden_layers"`
	Heads         int            `json:"num_attention_heads"`
	Intermediate  int            `json:"intermediate_size"`
	Positions     int            `json:"max_position_embeddings"`
	Types         int            `json:"type_vocab_size"`
	Vocabulary    int            `json:"vocab_size"`
	Epsilon       float32        `json:"layer_norm_eps"`
	Labels        map[string]any `json:"id2label"`
}

// classifier is the architecture of cross-encoders. trunks are those that a sentence encoder can be
// read from.
const classifier = "BertForSequenceClassification"

var trunks = []string{"BertModel", "BertForMaskedLM", "BertForPreTraining"}

// readArchitecture reads config.json. It rejects other architectures than BERT by name.
func readArchitecture(fsys fs.FS, wanted ...string) (architecture, error) {
	a := architecture{Activation: "gelu", PositionType: "absolute", Epsilon: 1e-12, Types: 2}
	if err := readJSON(fsys, configFile, &a); err != nil {
		return a, err
	}
	if err := a.check(wanted); err != nil {
		return a, fmt.Errorf("%s: %w", configFile, err)
	}
	return a, nil
}

func (a *architecture) check(wanted []string) error {
	if a.ModelType != "bert" {
		return fmt.Errorf("architecture %q (%s) is not supported, only \"bert\": %w",
			a.ModelType, strings.Join(a.Architectures, ", "), assay.ErrInvalid)
	}
	for _, name := range a.Architectures {
		if !slices.Contains(wanted, name) {
			return fmt.Errorf("architecture %s, want %s: %w", name, strings.Join(wanted, " or "), assay.ErrInvalid)
		}
	}
	if a.Activation != "gelu" {
		return fmt.Errorf("activation %q is not supported, only \"gelu\": %w", a.Activation, assay.ErrInvalid)
	}
	if a.PositionType != "absolute" {
		return fmt.Errorf("position type %q is not supported, only \"absolute\": %w", a.PositionType, assay.ErrInvalid)
	}
	const most, mostWide, mostLayers = 1 << 20, 1 << 16, 1 << 10 // more than any model has; products of two do not overflow, layers fit the kernels
	for name, n := range map[string]int{
		"hidden_size": a.Hidden, "num_hidden_layers": a.Layers, "num_attention_heads": a.Heads, "intermediate_size": a.Intermediate,
		"max_position_embeddings": a.Positions, "type_vocab_size": a.Types, "vocab_size": a.Vocabulary,
	} {
		if n < 1 || n > most {
			return fmt.Errorf("%s is %d: %w", name, n, assay.ErrDamaged)
		}
	}
	if a.Hidden > mostWide || a.Intermediate > mostWide {
		return fmt.Errorf("hidden_size is %d, intermediate_size %d, at most %d: %w", a.Hidden, a.Intermediate, mostWide, assay.ErrDamaged)
	}
	if a.Layers > mostLayers || a.Hidden%a.Heads != 0 || a.Positions < minTokens {
		return fmt.Errorf("hidden size %d, %d layers, %d heads, %d positions: %w", a.Hidden, a.Layers, a.Heads, a.Positions, assay.ErrDamaged)
	}
	return nil
}

// minTokens is the lowest token limit of a model: [CLS], one, [SEP].
const minTokens = 3

// settings are properties of a sentence encoder that its weights do not contain.
type settings struct {
	cls       bool   // pooling: the vector of [CLS], not the mean of all
	query     string // prefix of a query
	passage   string // prefix of a passage
	maxTokens int    // including [CLS] and [SEP]
	languages []string
}

// noteFile contains assay's own settings in a model's folder. It takes precedence over the other
// files.
const noteFile = "assay.json"

type noteJSON struct {
	Pooling   string   `json:"pooling"` // mean or cls
	Query     *string  `json:"query"`
	Passage   *string  `json:"passage"`
	MaxTokens int      `json:"max_tokens"`
	Languages []string `json:"languages"` // ISO 639-1
}

// readSettings reads the settings of the encoder in the folder, given the model's number of
// positions. It uses the files of sentence-transformers, if they exist, and assay's own settings.
// The defaults are mean pooling, no prompts, and as many tokens as there are positions.
func readSettings(fsys fs.FS, positions int) (settings, error) {
	s := settings{maxTokens: positions}
	if err := s.readModules(fsys); err != nil {
		return s, err
	}
	var prompts struct {
		Prompts map[string]string `json:"prompts"`
	}
	if _, err := readOptional(fsys, "config_sentence_transformers.json", &prompts); err != nil {
		return s, err
	}
	s.query = prompts.Prompts["query"]
	for _, name := range []string{"document", "passage"} {
		if prompt, named := prompts.Prompts[name]; named {
			s.passage = prompt
		}
	}
	if err := s.readLimit(fsys); err != nil {
		return s, err
	}
	return s, s.readNote(fsys, positions)
}

// readRerankerSettings reads the settings of a reranker, which has only a limit.
func readRerankerSettings(fsys fs.FS, positions int) (settings, error) {
	s := settings{maxTokens: positions}
	if err := s.readLimit(fsys); err != nil {
		return s, err
	}
	return s, s.readNote(fsys, positions)
}

// readLimit reads the token limit of the model.
func (s *settings) readLimit(fsys fs.FS) error {
	var sentence struct {
		MaxTokens int `json:"max_seq_length"`
	}
	if _, err := readOptional(fsys, "sentence_bert_config.json", &sentence); err != nil {
		return err
	}
	if sentence.MaxTokens > 0 {
		s.maxTokens = min(s.maxTokens, sentence.MaxTokens)
	}
	return nil
}

// readModules reads the pooling from the modules of a sentence-transformers model. It rejects
// unusual modules.
func (s *settings) readModules(fsys fs.FS) error {
	const modulesFile = "modules.json"
	pooling, listed := "1_Pooling", false
	var modules []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	if _, err := readOptional(fsys, modulesFile, &modules); err != nil {
		return err
	}
	for _, m := range modules {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
		case "Transformer", "Normalize":
		case "Pooling":
			pooling, listed = path.Clean(m.Path), true
		default:
			return fmt.Errorf("%s: a step of type %s is not supported: %w", modulesFile, kind, assay.ErrInvalid)
		}
	}
	if !fs.ValidPath(pooling) {
		return fmt.Errorf("%s: %q is not a path within the folder: %w", modulesFile, pooling, assay.ErrDamaged)
	}
	return s.readPooling(fsys, path.Join(pooling, configFile), listed)
}

func (s *settings) readPooling(fsys fs.FS, name string, required bool) error {
	modes := map[string]any{}
	if found, err := readOptional(fsys, name, &modes); err != nil {
		return err
	} else if required && !found {
		return fmt.Errorf("%s: listed in modules.json: %w", name, fs.ErrNotExist)
	}
	var on []string
	for mode, set := range modes {
		if set == true && strings.HasPrefix(mode, "pooling_mode_") {
			on = append(on, strings.TrimPrefix(mode, "pooling_mode_"))
		}
	}
	slices.Sort(on)
	switch strings.Join(on, "+") {
	case "", "mean_tokens":
	case "cls_token":
		s.cls = true
	default:
		return fmt.Errorf("%s: pooling %s is not supported, only mean_tokens or cls_token: %w", name, strings.Join(on, " with "), assay.ErrInvalid)
	}
	if modes["include_prompt"] == false {
		return fmt.Errorf("%s: pooling without the prompt is not supported: %w", name, assay.ErrInvalid)
	}
	return nil
}

func (s *settings) readNote(fsys fs.FS, positions int) error {
	var note noteJSON
	if _, err := readOptional(fsys, noteFile, &note); err != nil {
		return err
	}
	switch note.Pooling {
	case "":
	case "mean", "cls":
		s.cls = note.Pooling == "cls"
	default:
		return fmt.Errorf("%s: pooling %q is neither mean nor cls: %w", noteFile, note.Pooling, assay.ErrInvalid)
	}
	if note.Query != nil {
		s.query = *note.Query
	}
	if note.Passage != nil {
		s.passage = *note.Passage
	}
	if note.MaxTokens < 0 || note.MaxTokens > positions {
		return fmt.Errorf("%s: max_tokens is %d, but the model has %d positions: %w", noteFile, note.MaxTokens, positions, assay.ErrInvalid)
	}
	if note.MaxTokens > 0 {
		s.maxTokens = note.MaxTokens
	}
	s.languages = note.Languages
	if s.maxTokens < minTokens {
		return fmt.Errorf("a limit of %d tokens is too low: %w", s.maxTokens, assay.ErrInvalid)
	}
	return nil
}
