package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/assay-rag/assay"
)

// The files of a tokenizer: the first one, or else the other two.
const (
	tokenizerFile       = "tokenizer.json"
	vocabularyFile      = "vocab.txt"
	tokenizerConfigFile = "tokenizer_config.json"
)

// tokenizerJSON contains the relevant fields of tokenizer.json. Its truncation and padding are
// ignored: nothing is truncated here.
type tokenizerJSON struct {
	AddedTokens []struct {
		ID         int32  `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
	} `json:"added_tokens"`
	Normalizer *struct {
		Type               string `json:"type"`
		CleanText          bool   `json:"clean_text"`
		HandleChineseChars bool   `json:"handle_chinese_chars"`
		StripAccents       *bool  `json:"strip_accents"`
		Lowercase          bool   `json:"lowercase"`
	} `json:"normalizer"`
	PreTokenizer *struct {
		Type string `json:"type"`
	} `json:"pre_tokenizer"`
	PostProcessor *postProcessorJSON `json:"post_processor"`
	Model         struct {
		Type     string          `json:"type"`
		Unknown  string          `json:"unk_token"`
		Prefix   *string         `json:"continuing_subword_prefix"`
		MaxRunes *int            `json:"max_input_chars_per_word"`
		Vocab    json.RawMessage `json:"vocab"` // decoded only for WordPiece
	} `json:"model"`
}

// postProcessorJSON defines the tokens around a text.
type postProcessorJSON struct {
	Type   string      `json:"type"`
	Cls    []any       `json:"cls"` // BertProcessing: [token, ID]
	Sep    []any       `json:"sep"`
	Single []pieceJSON `json:"single"` // TemplateProcessing
	Pair   []pieceJSON `json:"pair"`
}

type pieceJSON struct {
	SpecialToken *struct {
		ID     string `json:"id"`
		TypeID int    `json:"type_id"`
	}
	Sequence *struct {
		ID     string `json:"id"`
		TypeID int    `json:"type_id"`
	}
}

// readTokenizer reads the folder's tokenizer for a model whose vocabulary has size entries.
func readTokenizer(fsys fs.FS, size int) (*tokenizer, error) {
	data, err := readSmall(fsys, tokenizerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return readVocabulary(fsys, size)
	}
	if err != nil {
		return nil, err
	}
	t, err := parseTokenizer(data, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tokenizerFile, err)
	}
	return t, nil
}

// parseTokenizer reads a tokenizer.json.
func parseTokenizer(data []byte, size int) (*tokenizer, error) {
	var j tokenizerJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return nil, fmt.Errorf("%w: %w", assay.ErrDamaged, err)
	}
	if err := j.supported(); err != nil {
		return nil, err
	}
	vocabulary := map[string]int32{}
	if err := json.Unmarshal(j.Model.Vocab, &vocabulary); err != nil {
		return nil, fmt.Errorf("%w: vocab: %w", assay.ErrDamaged, err)
	}
	around, err := j.PostProcessor.around()
	if err != nil {
		return nil, err
	}
	t, err := newTokenizer(vocabulary, *j.Model.Prefix, size)
	if err != nil {
		return nil, err
	}
	t.maxRunes = *j.Model.MaxRunes
	strip := j.Normalizer.Lowercase
	if j.Normalizer.StripAccents != nil {
		strip = *j.Normalizer.StripAccents
	}
	t.normalizer = normalizer{
		cleanText: j.Normalizer.CleanText, chineseChars: j.Normalizer.HandleChineseChars,
		stripAccents: strip, lowercase: j.Normalizer.Lowercase,
	}
	var raw, normal []addedToken
	for _, a := range j.AddedTokens {
		if a.Content == "" {
			continue
		}
		token := addedToken{content: a.Content, id: a.ID, singleWord: a.SingleWord, lstrip: a.LStrip, rstrip: a.RStrip}
		if id, known := vocabulary[a.Content]; known {
			token.id = id
		} else if token.id < 0 || int(token.id) >= size {
			return nil, fmt.Errorf("%w: token %q has ID %d, but the model has %d tokens", assay.ErrDamaged, a.Content, a.ID, size)
		} else {
			vocabulary[a.Content] = token.id
		}
		if !a.Normalized {
			raw = append(raw, token)
		} else if token.content = string(t.normalizer.append(nil, a.Content)); token.content != "" {
			normal = append(normal, token)
		}
	}
	t.raw, t.normal = newAddedTokens(raw), newAddedTokens(normal)
	return t, t.name(vocabulary, j.Model.Unknown, around[0], around[1])
}

// supported returns an error that names any component that is not a BERT tokenizer's.
func (j *tokenizerJSON) supported() error {
	switch {
	case j.Model.Type != "WordPiece":
		return fmt.Errorf("%w: tokenizer type %q is not supported, only WordPiece", assay.ErrInvalid, j.Model.Type)
	case j.Normalizer == nil || j.Normalizer.Type != "BertNormalizer":
		return fmt.Errorf("%w: the normalizer is not a BertNormalizer", assay.ErrInvalid)
	case j.PreTokenizer == nil || j.PreTokenizer.Type != "BertPreTokenizer":
		return fmt.Errorf("%w: the pre-tokenizer is not a BertPreTokenizer", assay.ErrInvalid)
	case j.Model.Prefix == nil || j.Model.MaxRunes == nil || *j.Model.MaxRunes < 1:
		return fmt.Errorf("%w: the WordPiece model lacks its prefix or maximum word length", assay.ErrDamaged)
	}
	return nil
}

// around returns the tokens before and after a text.
func (p *postProcessorJSON) around() ([2]string, error) {
	odd := fmt.Errorf("%w: the post-processor does not produce [CLS] text [SEP] as BERT's does", assay.ErrInvalid)
	if p == nil {
		return [2]string{}, odd
	}
	switch p.Type {
	case "BertProcessing":
		if len(p.Cls) == 2 && len(p.Sep) == 2 {
			cls, isString := p.Cls[0].(string)
			sep, areStrings := p.Sep[0].(string)
			if isString && areStrings {
				return [2]string{cls, sep}, nil
			}
		}
	case "TemplateProcessing":
		if len(p.Single) == 3 && p.Single[0].SpecialToken != nil && p.Single[1].Sequence != nil && p.Single[2].SpecialToken != nil {
			cls, sep := p.Single[0].SpecialToken.ID, p.Single[2].SpecialToken.ID
			if p.template() == cls+":0 A:0 "+sep+":0 B:1 "+sep+":1" {
				return [2]string{cls, sep}, nil
			}
		}
	}
	return [2]string{}, odd
}

// template returns the template of a pair as one line.
func (p *postProcessorJSON) template() string {
	var parts []string
	for _, piece := range p.Pair {
		switch {
		case piece.SpecialToken != nil:
			parts = append(parts, fmt.Sprintf("%s:%d", piece.SpecialToken.ID, piece.SpecialToken.TypeID))
		case piece.Sequence != nil:
			parts = append(parts, fmt.Sprintf("%s:%d", piece.Sequence.ID, piece.Sequence.TypeID))
		}
	}
	return strings.Join(parts, " ")
}

// readVocabulary reads a tokenizer from vocab.txt, with one token per line, and the settings in
// tokenizer_config.json, whose defaults are those of BertTokenizer.
func readVocabulary(fsys fs.FS, size int) (*tokenizer, error) {
	data, err := readSmall(fsys, vocabularyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("neither %s nor %s: %w", tokenizerFile, vocabularyFile, err)
	}
	if err != nil {
		return nil, err
	}
	settings := struct {
		Lowercase    *bool  `json:"do_lower_case"`
		StripAccents *bool  `json:"strip_accents"`
		Chinese      *bool  `json:"tokenize_chinese_chars"`
		Unknown      string `json:"unk_token"`
		Cls          string `json:"cls_token"`
		Sep          string `json:"sep_token"`
	}{Unknown: "[UNK]", Cls: "[CLS]", Sep: "[SEP]"}
	if err := readJSON(fsys, tokenizerConfigFile, &settings); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	vocabulary := make(map[string]int32, size)
	for line := range bytes.Lines(data) {
		token := strings.TrimRight(string(line), "\r\n")
		if _, twice := vocabulary[token]; twice {
			return nil, fmt.Errorf("%w: %s: duplicate token %q", assay.ErrDamaged, vocabularyFile, token)
		}
		vocabulary[token] = int32(len(vocabulary))
	}
	t, err := newTokenizer(vocabulary, "##", size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", vocabularyFile, err)
	}
	lowercase := settings.Lowercase == nil || *settings.Lowercase
	t.normalizer = normalizer{
		cleanText: true, chineseChars: settings.Chinese == nil || *settings.Chinese,
		stripAccents: lowercase, lowercase: lowercase,
	}
	if settings.StripAccents != nil {
		t.normalizer.stripAccents = *settings.StripAccents
	}
	var special []addedToken
	for _, name := range []string{"[PAD]", "[MASK]", settings.Unknown, settings.Cls, settings.Sep} {
		if id, known := vocabulary[name]; known && name != "" {
			special = append(special, addedToken{content: name, id: id})
		}
	}
	t.raw, t.normal = newAddedTokens(special), newAddedTokens(nil)
	if err := t.name(vocabulary, settings.Unknown, settings.Cls, settings.Sep); err != nil {
		return nil, fmt.Errorf("%s: %w", vocabularyFile, err)
	}
	return t, nil
}

// newTokenizer returns a tokenizer with the given vocabulary and BERT's limit on the length of
// words.
func newTokenizer(vocabulary map[string]int32, prefix string, size int) (*tokenizer, error) {
	if len(vocabulary) == 0 || prefix == "" {
		return nil, fmt.Errorf("%w: the vocabulary is empty or has no prefix for pieces inside words", assay.ErrDamaged)
	}
	t := &tokenizer{first: make(map[string]int32, len(vocabulary)), rest: make(map[string]int32, len(vocabulary)/4), maxRunes: 100}
	for piece, id := range vocabulary {
		if id < 0 || int(id) >= size {
			return nil, fmt.Errorf("%w: token %q has ID %d, but the model has %d tokens", assay.ErrDamaged, piece, id, size)
		}
		if rest, inside := strings.CutPrefix(piece, prefix); inside && rest != "" {
			t.rest[rest] = id
		}
		t.first[piece] = id
		t.longest = max(t.longest, len(piece))
	}
	return t, nil
}

// covers rejects a truncated vocabulary. Tables are padded to round numbers of rows, but never by
// as much as a sixteenth.
func (t *tokenizer) covers(rows int) error {
	if n := len(t.first); n < rows-rows/16 {
		return fmt.Errorf("%w: the tokenizer's vocabulary has %d tokens, the model %d", assay.ErrDamaged, n, rows)
	}
	return nil
}

// name looks up the IDs of the tokens that the tokenizer itself inserts.
func (t *tokenizer) name(vocabulary map[string]int32, unknown, cls, sep string) error {
	for _, n := range []struct {
		name string
		id   *int32
	}{{unknown, &t.unknown}, {cls, &t.cls}, {sep, &t.sep}} {
		id, known := vocabulary[n.name]
		if !known {
			return fmt.Errorf("%w: the vocabulary lacks %q", assay.ErrDamaged, n.name)
		}
		*n.id = id
	}
	return nil
}
