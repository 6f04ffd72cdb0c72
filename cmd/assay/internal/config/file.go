package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safeyaml"
)

// maxFileBytes is the maximum size of a configuration file.
const maxFileBytes = 1 << 20

// A file is the decoded YAML file. docs/models.md describes each key.
type file struct {
	Large     string                  `yaml:"large"`
	Small     string                  `yaml:"small"`
	Roles     map[string]string       `yaml:"roles"`
	Verifier  string                  `yaml:"verifier"`
	Embedding string                  `yaml:"embedding"`
	Rerank    string                  `yaml:"rerank"`
	Domain    string                  `yaml:"domain"`
	Cache     *bool                   `yaml:"cache"`
	Providers map[string]fileProvider `yaml:"providers"`
	Models    map[string]fileModel    `yaml:"models"`
	Web       *fileWeb                `yaml:"web"`
	Managed   *fileManaged            `yaml:"managed"`
	Services  map[string]fileService  `yaml:"services"`
	Graph     *fileGraph              `yaml:"graph"`
	Identity  *fileIdentity           `yaml:"identity"`
	Egress    *fileEgress             `yaml:"egress"`
	Server    *fileServer             `yaml:"server"`
	Telemetry *fileTelemetry          `yaml:"telemetry"`
	Commands  map[string]string       `yaml:"commands"`
	Store     *fileStore              `yaml:"store"`
	Index     *fileIndex              `yaml:"index"`
	Queue     *fileQueue              `yaml:"queue"`
	Redis     *fileRedis              `yaml:"redis"`

	Retrieval  fileRetrieval  `yaml:"retrieval"`
	Strategies fileStrategies `yaml:"strategies"`

	path string
	root ast.Node // nil if the file is empty
}

// fileRetrieval is the section retrieval. It configures how searches rank their hits.
type fileRetrieval struct {
	VectorWeight float64 `yaml:"vector_weight"` // see assay.Query
	Rerank       *bool   `yaml:"rerank"`        // false: hits keep their fused order

	BM25 assay.BM25 `yaml:"bm25"` // of the score by words
}

type fileProvider struct {
	Type       string            `yaml:"type"`
	BaseURL    string            `yaml:"base_url"`
	Key        string            `yaml:"key"`
	KeyEnv     string            `yaml:"key_env"`
	KeyFile    string            `yaml:"key_file"`
	Headers    map[string]string `yaml:"headers"`
	HeadersEnv map[string]string `yaml:"headers_env"`
	API        string            `yaml:"api"`
	Stream     *bool             `yaml:"stream"`
	Effort     string            `yaml:"effort"`
	Timeout    string            `yaml:"timeout"`
	Idle       string            `yaml:"idle_timeout"`
	Limits     fileLimits        `yaml:"limits"`
	Azure      *fileAzure        `yaml:"azure"`
	AWS        *fileAWS          `yaml:"aws"`
}

type fileLimits struct {
	Concurrency       int `yaml:"concurrency"`
	RequestsPerMinute int `yaml:"requests_per_minute"`
	TokensPerMinute   int `yaml:"tokens_per_minute"`
}

type fileAzure struct {
	APIVersion string `yaml:"api_version"`
}

type fileAWS struct {
	Region            string              `yaml:"region"`
	Profile           string              `yaml:"profile"`
	AccountID         string              `yaml:"account_id"`
	InferenceProfiles map[string][]string `yaml:"inference_profiles"`
	Guardrail         *fileGuardrail      `yaml:"guardrail"`
	KnowledgeBases    []string            `yaml:"knowledge_bases"`
	Agents            []fileAgent         `yaml:"agents"`
}

type fileGuardrail struct {
	ID        string  `yaml:"id"`
	Version   string  `yaml:"version"`
	Threshold float64 `yaml:"threshold"`
}

type fileAgent struct {
	ID    string `yaml:"id"`
	Alias string `yaml:"alias"`
}

type fileModel struct {
	Window      int      `yaml:"window"`
	MaxOutput   int      `yaml:"max_output"`
	InputPrice  *float64 `yaml:"input_price"`
	OutputPrice *float64 `yaml:"output_price"`
	CachedPrice *float64 `yaml:"cached_price"`
	Dimensions  int      `yaml:"dimensions"`
	MaxTokens   int      `yaml:"max_tokens"`

	QueryPrefix   string `yaml:"query_prefix"`
	PassagePrefix string `yaml:"passage_prefix"`
}

// readFile reads a configuration file. An empty file has no settings.
func readFile(path string) (*file, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Where: path, Detail: "cannot read it: " + reason(err)}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, &Error{Where: path, Detail: "cannot read it: " + reason(err)}
	}
	if len(data) > maxFileBytes {
		return nil, &Error{Where: path, Detail: "is not a configuration file: it is larger than 1 MiB"}
	}
	return parse(path, data)
}

// reason returns the system's error message without the path, which the caller's error already
// names.
func reason(err error) string {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// parse decodes the text of a configuration file. Errors name the line.
func parse(path string, data []byte) (*file, error) {
	f := &file{path: path}
	if err := safeyaml.Check(data); err != nil {
		return nil, &Error{Where: path, Detail: "is not a valid configuration file: " + err.Error()}
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, f.syntax(err)
	}
	var documents []ast.Node
	for _, d := range tree.Docs {
		if d.Body != nil {
			documents = append(documents, d.Body)
		}
	}
	if len(documents) == 0 {
		return f, nil
	}
	f.root = documents[0]
	if len(documents) > 1 {
		return nil, f.errorAt(documents[1].GetToken().Position.Line, "a second YAML document starts here", "keep one document")
	}
	// Null leaves a map or a struct unchanged, so that a key without a value counts as absent.
	err = yaml.NewDecoder(bytes.NewReader(data), yaml.DisallowUnknownField()).Decode(f)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, f.syntax(err)
	}
	return f, nil
}

// syntax describes an error of the YAML package. The package's own text would quote the lines
// around the error, which may contain keys.
func (f *file) syntax(err error) error {
	found, ok := errors.AsType[yaml.Error](err)
	if !ok {
		return &Error{Where: f.path, Detail: "is not valid YAML"}
	}
	line := 0
	if t := found.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	if unknown, ok := errors.AsType[*yaml.UnknownFieldError](err); ok {
		name := strings.TrimSuffix(strings.TrimPrefix(unknown.GetMessage(), `unknown field "`), `"`)
		return f.errorAt(line, "unknown key "+shown(name), f.unknownIn(line, name))
	}
	if mismatch, ok := errors.AsType[*yaml.TypeError](err); ok {
		return f.errorAt(line, fmt.Sprintf("got %s, want %s", typeWords(mismatch.SrcType), typeWords(mismatch.DstType)), "")
	}
	if _, ok := errors.AsType[*yaml.OverflowError](err); ok {
		return f.errorAt(line, "the number is too large", "")
	}
	if strings.Contains(found.GetMessage(), "already defined") {
		return f.errorAt(line, "duplicate key", "keep one of them")
	}
	if _, ok := errors.AsType[*yaml.UnexpectedNodeTypeError](err); ok {
		return f.errorAt(line, "got a value where keys are expected, or keys where a value is expected", "")
	}
	return f.errorAt(line, "invalid YAML: "+syntaxWords(found.GetMessage()), "check the indentation and the quotes")
}

// syntaxWords translates an error message of the YAML package for people.
func syntaxWords(message string) string {
	for _, x := range []struct{ part, words string }{
		{"'\\t'", "tabs are not allowed here; use spaces"},
		{"\t", "tabs are not allowed here; use spaces"},
		{"must be specified", "a comma or a closing bracket is missing"},
		{"sequence end token", "a [ is not closed"},
		{"flow map end token", "a { is not closed"},
		{"mapping end token", "a { is not closed"},
	} {
		if strings.Contains(message, x.part) {
			return x.words
		}
	}
	return cmp.Or(oneLine(message), "syntax error")
}

// oneLine returns the start of a message up to the first quotation or line break. Quoted text may
// contain anything.
func oneLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	for _, quote := range []string{`"`, "'", "`"} {
		s, _, _ = strings.Cut(s, quote)
	}
	return strings.TrimSpace(s)
}

// keys lists the YAML keys of a type and of the types within it.
func keys(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	var all []string
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "" && tag != "-" {
			all = append(append(all, tag), keys(t.Field(i).Type)...)
		}
	}
	return all
}

// typeWords names a type for people.
func typeWords(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeWords(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "keys with values"
}

// errorAt returns an Error at a line of the file.
func (f *file) errorAt(line int, detail, hint string) error {
	return &Error{Where: f.path, Line: line, Detail: detail, Hint: hint}
}

// wrong returns an Error about the value at a path of keys.
func (f *file) wrong(path []string, hint, format string, args ...any) error {
	return f.errorAt(f.line(path...), dotted(path)+": "+fmt.Sprintf(format, args...), hint)
}

// line returns the line of the key at a path, or that of its nearest ancestor in the file.
func (f *file) line(path ...string) int {
	node, line := f.root, 0
	for _, key := range path {
		value := child(node, key)
		if value == nil {
			break
		}
		node, line = value.Value, value.Key.GetToken().Position.Line
	}
	return line
}

// at returns the value at a path of keys, or nil if there is none.
func (f *file) at(path ...string) ast.Node {
	node := f.root
	for _, key := range path {
		value := child(node, key)
		if value == nil || value.Value == nil || value.Value.Type() == ast.NullType {
			return nil
		}
		node = value.Value
	}
	return node
}

// sectionAt returns the nearest top-level key on or above the line.
func (f *file) sectionAt(line int) string {
	section := ""
	values := []*ast.MappingValueNode{}
	switch n := f.root.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = append(values, n)
	}
	for _, v := range values {
		if t := v.Key.GetToken(); t.Position.Line <= line {
			section = t.Value
		}
	}
	return section
}

// child returns the entry of a mapping under a key, or nil if there is none.
func child(node ast.Node, key string) *ast.MappingValueNode {
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			if v.Key.GetToken().Value == key {
				return v
			}
		}
	case *ast.MappingValueNode:
		if n.Key.GetToken().Value == key {
			return n
		}
	}
	return nil
}

// duration parses a duration of at least 100ms. An empty text is zero.
func (f *file) duration(text string, path ...string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 100*time.Millisecond {
		return 0, f.wrong(path, "", "want a duration of 100ms or more, such as 60s or 2m")
	}
	return d, nil
}
