package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay/internal/markdown"
	"github.com/assay-rag/assay/parse"
)

// Options select files and tools.
type Options struct {
	Format string // a folder's name, or "pdf" for the PDFs of all folders; empty: all
	Match  string // a shell pattern of file names; empty: all
	Tools  string // folder of TOOL/FORMAT/FILE.md or .txt and TOOL/seconds.tsv; empty: none
	Out    string // folder for the Markdown of assay; empty: none
}

// A Result has the figures of a file. Headings and Cells are nil if neither side has any.
type Result struct {
	Format   string   `json:"format"`
	Tool     string   `json:"tool"`
	File     string   `json:"file"`
	Words    float64  `json:"words"`
	Order    float64  `json:"order"`
	Headings *float64 `json:"headings,omitempty"`
	Cells    *float64 `json:"cells,omitempty"`
	Seconds  float64  `json:"seconds"` // of wall time
	Error    string   `json:"error,omitempty"`
}

// assay is the name of this program among the tools.
const assay = "assay"

// longest is the time that a file may take.
const longest = 2 * time.Minute

// Measure returns the results of the files below a folder, by format, tool and file.
func Measure(ctx context.Context, folder string, opts Options) ([]Result, error) {
	files, err := referenced(folder, opts)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file in %s has a reference", folder)
	}
	tools := []tool{{name: assay}}
	if opts.Tools != "" {
		others, err := readTools(opts.Tools)
		if err != nil {
			return nil, err
		}
		tools = append(tools, others...)
	}
	var results []Result
	for _, format := range formatsOf(files) {
		for _, t := range tools {
			for _, f := range files {
				if f.format != format || !t.reads(format) {
					continue
				}
				r, err := f.measure(ctx, t, opts.Out)
				if err != nil {
					return nil, err
				}
				results = append(results, r)
			}
		}
	}
	return results, nil
}

// A file is a source with a reference.
type file struct {
	format, name      string
	source, reference string // paths
}

// referenced returns the files with a reference, by format and name.
func referenced(folder string, opts Options) ([]file, error) {
	formats, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, format := range formats {
		if !format.IsDir() {
			continue
		}
		sources, err := os.ReadDir(filepath.Join(folder, format.Name(), "sources"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			if opts.Match != "" {
				if ok, err := filepath.Match(opts.Match, s.Name()); err != nil || !ok {
					if err != nil {
						return nil, err
					}
					continue
				}
			}
			f := file{
				format: formatOf(format.Name(), s.Name()), name: s.Name(),
				source:    filepath.Join(folder, format.Name(), "sources", s.Name()),
				reference: referenceOf(folder, format.Name(), s.Name()),
			}
			if f.reference != "" && (opts.Format == "" || opts.Format == f.format) {
				files = append(files, f)
			}
		}
	}
	slices.SortStableFunc(files, func(a, b file) int { return strings.Compare(a.format, b.format) })
	return files, nil
}

// formatOf returns the format of a file in a folder. A PDF is one in whatever folder it is.
func formatOf(folder, name string) string {
	if strings.EqualFold(filepath.Ext(name), ".pdf") {
		return "pdf"
	}
	return folder
}

// referenceOf returns the path of a file's reference, or "".
func referenceOf(folder, format, name string) string {
	for _, stem := range []string{name, strings.TrimSuffix(name, filepath.Ext(name))} {
		path := filepath.Join(folder, format, "groundtruth", stem+".md")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

func formatsOf(files []file) []string {
	var formats []string
	for _, f := range files {
		if !slices.Contains(formats, f.format) {
			formats = append(formats, f.format)
		}
	}
	return formats
}

// measure compares the result of a tool for a file with the reference.
func (f file) measure(ctx context.Context, t tool, out string) (Result, error) {
	r := Result{Format: f.format, Tool: t.name, File: f.name}
	reference, err := os.ReadFile(f.reference)
	if err != nil {
		return r, err
	}
	want := readMarkdown(string(reference))
	var got contents
	if t.name == assay {
		text, seconds, err := parseFile(ctx, f.source)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Seconds = seconds
		if err != nil {
			r.Error = err.Error()
		} else if out != "" {
			if err := writeFile(filepath.Join(out, f.format, f.name+".md"), text); err != nil {
				return r, err
			}
		}
		got = readMarkdown(text)
	} else {
		r.Seconds = t.seconds[f.format+"/"+f.name]
		if got, err = t.read(f); err != nil {
			r.Error = err.Error()
		}
	}
	if r.Error == "" {
		r.Words, r.Order = f1(want.words, got.words), similarity(want.words, got.words)
	}
	r.Headings, r.Cells = f1Of(want.headings, got.headings), f1Of(want.cells, got.cells)
	return r, nil
}

// f1Of is f1, or nil if both are empty.
func f1Of(a, b []string) *float64 {
	if len(a)+len(b) == 0 {
		return nil
	}
	f := f1(a, b)
	return &f
}

// parseFile returns the Markdown of the document in a file and the seconds that it took to parse.
func parseFile(ctx context.Context, path string) (text string, seconds float64, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	start := time.Now()
	doc, err := parse.Parse(ctx, parse.Input{Name: filepath.Base(path), Data: data})
	seconds = time.Since(start).Seconds()
	if err != nil {
		return "", seconds, err
	}
	return markdown.Render(doc.Text, doc.Structure), seconds, nil
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// A tool is a program whose results are compared.
type tool struct {
	name    string
	folder  string             // of the results; empty for assay
	seconds map[string]float64 // by FORMAT/FILE
}

// readTools returns the tools with results in a folder, by name.
func readTools(folder string) ([]tool, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var tools []tool
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		t := tool{name: e.Name(), folder: filepath.Join(folder, e.Name()), seconds: map[string]float64{}}
		data, err := os.ReadFile(filepath.Join(t.folder, "seconds.tsv"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if t.seconds[name], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, fmt.Errorf("%s: seconds of %s: %w", t.name, name, err)
			}
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// reads reports whether a tool has results of a format.
func (t tool) reads(format string) bool {
	if t.name == assay {
		return true
	}
	info, err := os.Stat(filepath.Join(t.folder, format))
	return err == nil && info.IsDir()
}

// read returns the contents of a tool's result for a file: Markdown in FILE.md or text in FILE.txt.
func (t tool) read(f file) (contents, error) {
	path := filepath.Join(t.folder, f.format, f.name)
	data, err := os.ReadFile(path + ".md")
	if err == nil {
		return readMarkdown(string(data)), nil
	}
	if data, err = os.ReadFile(path + ".txt"); err == nil {
		return contents{words: wordsOf(string(data))}, nil
	}
	return contents{}, errors.New("no result")
}
