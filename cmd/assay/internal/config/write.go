package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/assay-rag/assay/internal/safeyaml"
)

// A Setting is a value at a path of keys, such as "retrieval.vector_weight". Values are numbers and
// booleans.
type Setting struct {
	Path  string
	Value any
}

// Snippet returns a configuration file that has only the settings.
func Snippet(settings []Setting) (string, error) {
	data, err := edit(nil, settings)
	return string(data), err
}

// Place returns the file that settings are written to: the file that is read, or the default path
// if there is none.
func Place(s Sources) (string, error) {
	path, err := s.path()
	if err != nil || path != "" {
		return path, err
	}
	find := s.UserDir
	if find == nil {
		find = os.UserConfigDir
	}
	dir, err := find()
	if err != nil {
		return "", &Error{Where: "configuration", Detail: "cannot find the user's configuration folder: " + err.Error(), Hint: "name a file with --config"}
	}
	return filepath.Join(dir, "assay", "config.yaml"), nil
}

// Write writes settings into a file and preserves everything else in it, including comments and
// order. The file is replaced atomically. Write keeps the previous contents in a backup file next
// to it and returns the backup's name, which is empty if there was no file. If the file is invalid
// or cannot be edited, Write returns an *Error and leaves it unchanged.
func Write(path string, settings []Setting) (backup string, err error) {
	if whole, err := filepath.EvalSymlinks(path); err == nil {
		path = whole // keep the symbolic link
	}
	before, err := os.ReadFile(path)
	mode := fs.FileMode(0o600)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", err
		}
	case err != nil:
		return "", &Error{Where: path, Detail: "cannot read it: " + reason(err)}
	default:
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		mode = info.Mode().Perm()
	}
	if _, err := parse(path, before); err != nil {
		return "", err
	}
	after, err := edit(before, settings)
	if err != nil {
		return "", &Error{Where: path, Detail: err.Error(), Hint: "edit the file by hand"}
	}
	if before != nil {
		if backup, err = keep(path, before, mode); err != nil {
			return "", err
		}
	}
	return backup, replace(path, after, mode)
}

// keep writes a backup of a file next to it, under an unused name.
func keep(path string, data []byte, mode fs.FileMode) (string, error) {
	for n := 1; ; n++ {
		name := path + ".bak"
		if n > 1 {
			name += "." + strconv.Itoa(n)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		return name, errors.Join(err, f.Sync(), f.Close())
	}
}

// replace replaces a file atomically.
func replace(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// edit returns a file's text with the settings in it. It decodes both texts to check that nothing
// else has changed.
func edit(data []byte, settings []Setting) ([]byte, error) {
	want, err := plain(data)
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(data)
	for _, s := range settings {
		path := strings.Split(s.Path, ".")
		if out, err = set(out, path, fmt.Sprint(s.Value)); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Path, err)
		}
		put(want, path, s.Value)
	}
	got, err := plain(out)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(got, want) {
		return nil, errors.New("its layout is too unusual to edit automatically")
	}
	return out, nil
}

// plain decodes YAML into maps, with numbers made comparable.
func plain(data []byte) (map[string]any, error) {
	if err := safeyaml.Check(data); err != nil {
		return nil, err
	}
	all := map[string]any{}
	if err := yaml.Unmarshal(data, &all); err != nil {
		return nil, errors.New("it is not valid YAML")
	}
	return numbers(all).(map[string]any), nil
}

// numbers converts all numbers to one type.
func numbers(v any) any {
	switch x := v.(type) {
	case map[string]any:
		if x == nil {
			return map[string]any{}
		}
		for k := range x {
			x[k] = numbers(x[k])
		}
		return x
	case []any:
		for i := range x {
			x[i] = numbers(x[i])
		}
		return x
	}
	if r := reflect.ValueOf(v); r.IsValid() {
		switch {
		case r.CanInt():
			return float64(r.Int())
		case r.CanUint():
			return float64(r.Uint())
		}
	}
	return v
}

// put sets a value in nested maps.
func put(all map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		next, ok := all[key].(map[string]any)
		if !ok || next == nil {
			next = map[string]any{}
			all[key] = next
		}
		all = next
	}
	all[path[len(path)-1]] = numbers(value)
}

// set puts one value into a file's text: at its key, or else in the nearest section that exists, or
// at the end.
func set(data []byte, path []string, value string) ([]byte, error) {
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, errors.New("it is not valid YAML")
	}
	var node ast.Node
	for _, d := range tree.Docs {
		if d.Body != nil && node == nil {
			node = d.Body
		}
	}
	text := newLines(data)
	for i, key := range path {
		found := child(node, key)
		if found == nil {
			return text.insert(node, nil, path[i:], value)
		}
		switch v := found.Value; {
		case i == len(path)-1:
			return text.replace(found, value)
		case v == nil || v.Type() == ast.NullType:
			return text.insert(nil, found, path[i+1:], value)
		case v.Type() != ast.MappingType && v.Type() != ast.MappingValueType:
			return nil, errors.New("got a value where keys are expected")
		default:
			node = v
		}
	}
	return nil, errors.New("the key is empty")
}

// lines is a file's text during editing.
type lines struct {
	all []string
	end string // line ending: "\n" or "\r\n"
}

func newLines(data []byte) lines {
	l := lines{end: "\n"}
	if bytes.Contains(data, []byte("\r\n")) {
		l.end = "\r\n"
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	if text = strings.TrimSuffix(text, "\n"); text != "" {
		l.all = strings.Split(text, "\n")
	}
	return l
}

func (l lines) bytes() []byte { return []byte(strings.Join(l.all, l.end) + l.end) }

// errOtherwise reports text whose layout cannot be edited.
var errOtherwise = errors.New("its layout is too unusual to edit automatically")

// replace replaces the value of a key.
func (l lines) replace(at *ast.MappingValueNode, value string) ([]byte, error) {
	if at.Value == nil || at.Value.Type() == ast.NullType {
		t := at.Key.GetToken()
		if l.at(t.Position.Line) == "" {
			return nil, errOtherwise
		}
		before, after, found := strings.Cut(l.at(t.Position.Line), t.Value+":")
		if !found {
			return nil, errOtherwise
		}
		after = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(after, " null"), " ~"), " ")
		if after != "" {
			after = " " + after
		}
		l.all[t.Position.Line-1] = before + t.Value + ": " + value + after
		return l.bytes(), nil
	}
	t := at.Value.GetToken()
	line := l.at(t.Position.Line)
	runes := []rune(line)
	from := t.Position.Column - 1
	if line == "" || from < 0 || from > len(runes) || !strings.HasPrefix(string(runes[from:]), t.Value) {
		return nil, errOtherwise
	}
	l.all[t.Position.Line-1] = string(runes[:from]) + value + strings.TrimPrefix(string(runes[from:]), t.Value)
	return l.bytes(), nil
}

// at returns a line, counted from 1.
func (l lines) at(n int) string {
	if n < 1 || n > len(l.all) {
		return ""
	}
	return l.all[n-1]
}

// insert puts keys and a value into a mapping, under a key without a value or, if both are nil, at
// the end.
func (l lines) insert(into ast.Node, under *ast.MappingValueNode, path []string, value string) ([]byte, error) {
	if m, ok := into.(*ast.MappingNode); ok && m.IsFlowStyle {
		return l.insertFlow(m, path, value)
	}
	line, column := len(l.all), 0
	switch {
	case under != nil:
		t := under.Key.GetToken()
		line, column = t.Position.Line, t.Position.Column+1
		if strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(strings.SplitN(l.at(line), "#", 2)[0]), t.Value+":")) != "" {
			return nil, errOtherwise
		}
	case into != nil:
		var first *ast.MappingValueNode
		switch n := into.(type) {
		case *ast.MappingNode:
			if len(n.Values) > 0 {
				first = n.Values[0]
			}
		case *ast.MappingValueNode:
			first = n
		}
		if first == nil {
			return nil, errOtherwise
		}
		t := first.Key.GetToken()
		if column = t.Position.Column - 1; column > 0 { // else at the end of the file
			line = t.Position.Line - 1
			for line > 0 && strings.HasPrefix(strings.TrimSpace(l.at(line)), "#") {
				line-- // comments stay with the first key
			}
		}
	}
	var block []string
	for i, key := range path {
		text := strings.Repeat(" ", column+2*i) + key + ":"
		if i == len(path)-1 {
			text += " " + value
		}
		block = append(block, text)
	}
	if line > len(l.all) {
		return nil, errOtherwise
	}
	l.all = slices.Insert(l.all, line, block...)
	return l.bytes(), nil
}

// insertFlow puts keys and a value at the start of a flow mapping.
func (l lines) insertFlow(m *ast.MappingNode, path []string, value string) ([]byte, error) {
	t := m.Start
	if t == nil {
		return nil, errOtherwise
	}
	runes := []rune(l.at(t.Position.Line))
	at := t.Position.Column
	if at < 1 || at > len(runes) || runes[at-1] != '{' {
		return nil, errOtherwise
	}
	text := path[len(path)-1] + ": " + value
	for _, key := range slices.Backward(path[:len(path)-1]) {
		text = key + ": {" + text + "}"
	}
	if len(m.Values) > 0 {
		text += ", "
	}
	l.all[t.Position.Line-1] = string(runes[:at]) + text + string(runes[at:])
	return l.bytes(), nil
}
