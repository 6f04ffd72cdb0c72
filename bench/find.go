package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A foundText is a real text of this machine. In Text a line that starts with "# " is a heading.
type foundText struct {
	Title, Text string
}

// maxFileBytes is the largest uncompressed size of a file to be read as text.
const maxFileBytes = 8 << 20

// A place is a source of texts on the machine.
type place struct {
	name  string
	texts func(ctx context.Context) iter.Seq2[foundText, error]
}

// places lists the sources of texts, prose first: the data sets in the folder ASSAY_TESTDATA, then
// the files of a Debian or a Go installation. Missing ones yield nothing.
func places(testdata string) []place {
	goroot, modules := goEnv("GOROOT"), goEnv("GOMODCACHE")
	prose := []string{".md", ".txt", ".html", ".htm", ".rst", ".pod"}
	docs := append([]string{"", ".Debian", ".c"}, prose...)
	found := []place{}
	if testdata != "" {
		found = append(found,
			place{"the documentation sets of ASSAY_TESTDATA", jsonLines(filepath.Join(testdata, "data", "corpora", "*.jsonl"))},
			place{"the retrieval sets of ASSAY_TESTDATA", jsonLines(filepath.Join(testdata, "data", "retrieval", "*", "corpus.jsonl"))},
		)
	}
	return append(found,
		place{"/usr/share/doc", files("/usr/share/doc", readDocument, docs...)},
		place{"manual pages", files("/usr/share/man", readManual)},
		place{"/usr/share/info", files("/usr/share/info", readDocument, ".info")},
		place{"documents of the Go installation", files(goroot, readDocument, prose...)},
		place{"documents of the Go module cache", files(modules, readDocument, prose...)},
		place{"comments of the Go installation", files(goroot, readComments, ".go")},
		place{"comments of the Go module cache", files(modules, readComments, ".go")},
		place{"Perl of the system", files("/usr/share/perl", readDocument, ".pl", ".pm", ".pod")},
		place{"Python of the system", files("/usr/lib/python3", readDocument, ".py", ".txt")},
		place{"sources of the Go installation", files(goroot, readCode, ".go")},
		place{"sources of the Go module cache", files(modules, readCode, ".go")},
	)
}

func goEnv(name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return os.Getenv(name)
	}
	return strings.TrimSpace(string(out))
}

// jsonLines yields the rows {"title", "text"} of the matching files.
func jsonLines(pattern string) func(context.Context) iter.Seq2[foundText, error] {
	return func(ctx context.Context) iter.Seq2[foundText, error] {
		return func(yield func(foundText, error) bool) {
			names, err := filepath.Glob(pattern) // sorted
			if err != nil {
				yield(foundText{}, err)
				return
			}
			for _, name := range names {
				for t, err := range jsonRows(name) {
					if err == nil {
						err = ctx.Err()
					}
					if !yield(t, err) || err != nil {
						return
					}
				}
			}
		}
	}
}

func jsonRows(name string) iter.Seq2[foundText, error] {
	return func(yield func(foundText, error) bool) {
		f, err := os.Open(name)
		if err != nil {
			yield(foundText{}, err)
			return
		}
		defer f.Close()
		d := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
		for {
			var t foundText
			if err := d.Decode(&t); err == io.EOF {
				return
			} else if err != nil {
				yield(foundText{}, fmt.Errorf("%s: %w", name, err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// files yields the texts of the files under root with one of the extensions (none: all files),
// optionally followed by ".gz", in the order of their paths. It skips unreadable files.
func files(root string, read func(name, text string) foundText, extensions ...string) func(context.Context) iter.Seq2[foundText, error] {
	wanted := make(map[string]bool)
	for _, e := range extensions {
		wanted[e] = true
	}
	return func(ctx context.Context) iter.Seq2[foundText, error] {
		return func(yield func(foundText, error) bool) {
			err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					if root != name && d != nil && d.IsDir() && foreignManual(root, name) {
						return fs.SkipDir
					}
					return ctx.Err()
				}
				unpacked := strings.TrimSuffix(name, ".gz")
				if !d.Type().IsRegular() || len(wanted) > 0 && !wanted[filepath.Ext(unpacked)] {
					return nil
				}
				data, err := readFile(name)
				if err != nil || !utf8.Valid(data) || strings.IndexByte(string(data[:min(len(data), 4096)]), 0) >= 0 {
					return nil
				}
				if !yield(read(unpacked, string(data)), nil) {
					return fs.SkipAll
				}
				return nil
			})
			if err != nil {
				yield(foundText{}, err)
			}
		}
	}
}

// foreignManual reports whether a folder holds manual pages in a language other than English.
func foreignManual(root, name string) bool {
	return root == "/usr/share/man" && filepath.Dir(name) == root && !strings.HasPrefix(filepath.Base(name), "man")
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		unpacked, err := gzip.NewReader(f)
		if err != nil {
			return nil, err
		}
		r = unpacked
	}
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFileBytes)
	}
	return data, err
}

// readDocument reads plain text, Markdown or HTML.
func readDocument(name, text string) foundText {
	title := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	if title == "README" || title == "index" || title == "changelog" || title == "copyright" {
		title = filepath.Base(filepath.Dir(name)) + " " + title
	}
	if ext := filepath.Ext(name); ext == ".html" || ext == ".htm" {
		return readHTML(title, text)
	}
	return foundText{title, text}
}

// readHTML returns the words of a page and marks its headings.
func readHTML(title, text string) foundText {
	t := foundText{Title: title}
	var b strings.Builder
	skip, inTitle := 0, false
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			t.Text = b.String()
			return t
		}
		name, _ := z.TagName()
		switch tag := string(name); {
		case kind == html.TextToken && inTitle:
			t.Title = strings.Join(strings.Fields(string(z.Text())), " ")
		case kind == html.TextToken && skip == 0:
			b.Write(z.Text())
		case tag == "title":
			inTitle = kind == html.StartTagToken
		case tag == "script" || tag == "style":
			if kind == html.StartTagToken {
				skip++
			} else if kind == html.EndTagToken {
				skip = max(0, skip-1)
			}
		case kind == html.StartTagToken && len(tag) == 2 && tag[0] == 'h' && tag[1] >= '1' && tag[1] <= '6':
			b.WriteString("\n\n# ")
		case tag == "p" || tag == "div" || tag == "pre" || tag == "tr" || tag == "li" || len(tag) == 2 && tag[0] == 'h':
			b.WriteString("\n\n")
		}
	}
}

// readManual returns the words of a page in troff and marks its sections.
func readManual(name, text string) foundText {
	t := foundText{Title: filepath.Base(name)}
	if strings.HasPrefix(t.Title, "gcloud_") {
		return t // ten thousand generated pages, mostly boilerplate
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		macro, rest, _ := strings.Cut(line, " ")
		switch {
		case !strings.HasPrefix(line, ".") && !strings.HasPrefix(line, "'"):
			b.WriteString(plain(line) + "\n")
		case macro == ".SH" || macro == ".Sh" || macro == ".SS" || macro == ".Ss":
			b.WriteString("\n# " + plain(strings.Trim(rest, `"`)) + "\n\n")
		case macro == ".PP" || macro == ".P" || macro == ".LP" || macro == ".Pp" || macro == ".sp" || macro == ".TP":
			b.WriteString("\n")
		case spoken[strings.TrimLeft(macro, ".")]:
			b.WriteString(plain(rest) + "\n")
		}
	}
	t.Text = b.String()
	return t
}

// spoken lists the macros whose arguments are words of the page.
var spoken = map[string]bool{"B": true, "I": true, "BR": true, "IR": true, "RB": true, "RI": true, "BI": true, "IB": true, "SM": true,
	"Nm": true, "Nd": true, "Fl": true, "Ar": true, "Op": true, "It": true, "Pa": true, "Cm": true, "Xr": true, "Dv": true, "Fn": true, "IP": true}

var (
	fonts = lazyregexp.New(`\\[fm](\[[^\]]*\]|\(..|.)|\\s[-+]?[0-9]|\\\*\([CLR]['"` + "`" + `]?|\\[&|^c/]`)
	marks = strings.NewReplacer(`\-`, "-", `\(bu`, "•", `\(aq`, "'", `\(lq`, `"`, `\(rq`, `"`, `\(dq`, `"`, `\(co`, "©", `\e`, `\`, `\ `, " ", `\(em`, "—")
)

func plain(line string) string { return marks.Replace(fonts.ReplaceAllString(line, "")) }

// readComments returns the comments of a Go file as paragraphs.
func readComments(name, text string) foundText {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), "//")
		ok = ok && !strings.HasPrefix(comment, "go:")
		if ok {
			b.WriteString(strings.TrimPrefix(comment, " ") + "\n")
		} else if inside {
			b.WriteString("\n")
		}
		inside = ok
	}
	return foundText{packageTitle(name), b.String()}
}

// readCode returns the code of a Go file, without lines that are comments.
func readCode(name, text string) foundText {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "//") {
			b.WriteString(line)
		}
	}
	return foundText{packageTitle(name), b.String()}
}

// packageTitle returns a title for a Go file from its folder and name: "net/http server.go".
func packageTitle(name string) string {
	dir, file := filepath.Split(name)
	dir = filepath.Clean(dir)
	return filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir) + " " + file
}
