// Command generate writes the licences of everything that the program assay contains, as gzipped JSON. It
// lists the packages of the program on each system that is built for, and takes the licence files
// of their modules from the module cache.
//
//	go run ./generate notices.json.gz
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/notices"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FILE")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// embedded are the parts of the program that are no modules, with their files in the repository.
var embedded = []struct {
	name  string
	files []string
}{
	{"PDFium, as WebAssembly", []string{"internal/pdfium/LICENSE.pdfium", "internal/pdfium/LICENSE.embedpdf"}},
	{"gte-small, an encoder, and the reader trained from it", []string{"provider/embedded/LICENSE"}},
}

// systems are those that the program is built for.
var systems = []string{"linux", "darwin", "windows"}

func generate(file string) error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	root := strings.TrimSpace(string(out))
	modules := map[string]*module{}
	for _, system := range systems {
		if err := list(root, system, modules); err != nil {
			return err
		}
	}
	var all []notices.Notice
	for _, m := range modules {
		n, err := m.notice()
		if err != nil {
			return err
		}
		all = append(all, n)
	}
	for _, e := range embedded {
		n := notices.Notice{Name: e.name}
		for _, f := range e.files {
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f)))
			if err != nil {
				return err
			}
			n.Texts = append(n.Texts, notices.Text{File: f, Text: string(data)})
		}
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b notices.Notice) int { return strings.Compare(a.Name, b.Name) })
	for i := range all {
		if all[i].License = license(all[i].Texts); all[i].License == "" {
			return fmt.Errorf("%s: no licence that is known: %s", all[i].Name, all[i].Texts[0].File)
		}
	}
	return write(file, all)
}

// license returns the identifiers of the texts.
func license(texts []notices.Text) string {
	var ids []string
	for _, t := range texts {
		if id := notices.Identify(t.Text); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, " AND ")
}

// A module is one module of the program.
type module struct {
	path, version, dir string
	files              map[string]bool // its licence files
}

// A listed is a package as go list prints it.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

// list adds the modules of the program on one system.
func list(root, system string, modules map[string]*module) error {
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", "./cmd/assay", "./cmd/assay-lambda")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list for %s: %w", system, err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := add(p, modules); err != nil {
			return err
		}
	}
}

func add(p listed, modules map[string]*module) error {
	found := module{path: "Go, its library and runtime"}
	switch {
	case p.Standard:
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return err
		}
		found.dir = strings.TrimSpace(string(out))
	case p.Module == nil || p.Module.Main:
		return nil
	default:
		found.path, found.version, found.dir = p.Module.Path, p.Module.Version, p.Module.Dir
		if r := p.Module.Replace; r != nil {
			found.path, found.version, found.dir = r.Path, r.Version, r.Dir
		}
	}
	m := modules[found.path]
	if m == nil {
		found.files = map[string]bool{}
		m = &found
		modules[found.path] = m
	}
	if p.Standard {
		m.files["LICENSE"] = true
		return nil
	}
	return m.collect(p.Dir)
}

var licenseName = lazyregexp.New(`(?i)^(li[cs]en[cs]e|copying|copyright|notice|unlicense|patents)([-._].*)?$`)

// collect adds the licence files of a package's folder and of those above it in the module.
func (m *module) collect(dir string) error {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			rel, err := filepath.Rel(m.dir, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			if e.Type().IsRegular() && licenseName.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
				m.files[filepath.ToSlash(rel)] = true
			}
		}
		if dir == m.dir || len(dir) <= len(m.dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

func (m *module) notice() (notices.Notice, error) {
	n := notices.Notice{Name: m.path, Version: m.version}
	for file := range m.files {
		data, err := os.ReadFile(filepath.Join(m.dir, filepath.FromSlash(file)))
		if errors.Is(err, fs.ErrNotExist) && m.version == "" { // some distributions of Go leave it elsewhere
			return n, fmt.Errorf("%s has no %s", m.dir, file)
		}
		if err != nil {
			return n, err
		}
		n.Texts = append(n.Texts, notices.Text{File: file, Text: string(data)})
	}
	if len(n.Texts) == 0 {
		return n, fmt.Errorf("%s %s has no licence file in %s", m.path, m.version, m.dir)
	}
	slices.SortFunc(n.Texts, func(a, b notices.Text) int { return strings.Compare(a.File, b.File) })
	return n, nil
}

// write writes the notices. Equal notices give equal bytes.
func write(file string, all []notices.Notice) error {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	e := json.NewEncoder(z)
	e.SetEscapeHTML(false)
	if err := errors.Join(e.Encode(all), z.Close()); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}
