package parseworker

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/assay-rag/assay/parse"
)

// A seed is an undamaged file.
type seed struct {
	name string
	data []byte
}

// TestDamaged parses damaged variants of files of every format: truncated, with changed bytes,
// nested and with bombs, and files made to need much. Each must have an outcome within the limits of time and memory. It prints
// the outcomes by format. The full run takes 1,000 variants and a built assay:
//
//	ASSAY_LONG=1 go test -run TestDamaged -v -timeout 1h ./internal/parseworker
//
// It takes the files below ASSAY_TESTDATA as seeds, and some made here.
func TestDamaged(t *testing.T) {
	compilePDFium(t)
	total := 100
	pool := testPool(t, "parse")
	pool.Timeout = 5 * time.Minute // the default is under test in the full run, which has the machine to itself
	if os.Getenv("ASSAY_LONG") != "" {
		total = 1000
		binary := filepath.Join(t.TempDir(), "assay")
		build := exec.Command("go", "build", "-o", binary, "../../cmd/assay")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		pool.Command, pool.Timeout = []string{binary, "parse-worker"}, DefaultTimeout
	}
	formats := seeds(t)
	var exts []string
	for ext := range formats {
		exts = append(exts, ext)
	}
	slices.Sort(exts)
	variants := slices.Clone(exts)
	ocr, err := parse.FindOCR(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := damager{t: t, pool: pool, ocr: ocr, rows: map[string]*outcomes{}}
	var all sync.WaitGroup
	slots := make(chan struct{}, 2)
	try := func(ext, kind, name string, data []byte) {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			d.try(ext, kind, name, data)
		})
	}
	if os.Getenv("ASSAY_LONG") != "" {
		for _, b := range bombs(t) {
			try("bombs", "made", b.name, b.data)
		}
		exts = append(exts, "bombs")
	}
	for i := range total {
		ext := variants[i%len(variants)]
		random := rand.New(rand.NewPCG(20240102, uint64(i)))
		of := formats[ext]
		s := of[random.IntN(len(of))]
		kind := damages[(i/len(variants))%len(damages)]
		try(ext, kind.name, s.name, kind.damage(random, s))
	}
	all.Wait()
	d.print(exts, total)
	if pool.Peak() > DefaultMemory {
		t.Errorf("a worker had %d MiB in memory", pool.Peak()>>20)
	}
}

// outcomes counts the outcomes of the variants of one format. Counts of documents include those
// inside others.
type outcomes struct {
	files, documents int
	kinds            map[string]int
	slowest          time.Duration
}

// A damager parses variants and counts their outcomes.
type damager struct {
	t    *testing.T
	pool *Pool
	ocr  *parse.OCR
	mu   sync.Mutex
	rows map[string]*outcomes
}

func (d *damager) try(ext, kind, name string, data []byte) {
	began := time.Now()
	var errs []error
	documents, yields := 0, 0
	err := d.pool.Walk(d.t.Context(), parse.Input{Name: name, Data: data, OCR: d.ocr}, func(p parse.Parsed) error {
		yields++
		if p.Err != nil {
			errs = append(errs, p.Err)
		} else {
			documents++
		}
		return nil
	})
	took := time.Since(began)
	d.mu.Lock()
	defer d.mu.Unlock()
	row := d.rows[ext]
	if row == nil {
		row = &outcomes{kinds: map[string]int{}}
		d.rows[ext] = row
	}
	row.files++
	row.documents += documents
	row.slowest = max(row.slowest, took)
	if took > 10*time.Second {
		d.t.Logf("%s (%s, %d bytes): %v", name, kind, len(data), took)
	}
	if err != nil || yields == 0 {
		d.t.Errorf("%s (%s): %d outcomes, %v", name, kind, yields, err)
	}
	for _, err := range errs {
		column := "other"
		for _, k := range parse.Kinds() {
			if errors.Is(err, k) {
				column = k.Error()
			}
		}
		if strings.Contains(err.Error(), "parsing took more than") {
			column = "time"
		}
		if strings.Contains(err.Error(), "MiB of memory") {
			column = "memory"
		}
		row.kinds[column]++
		switch column {
		case "other", "time":
			d.t.Errorf("%s (%s, %d bytes): %v", name, kind, len(data), err)
		case parse.ErrCrash.Error(), "memory":
			d.t.Logf("%s (%s, %d bytes): %v", name, kind, len(data), err)
		}
	}
}

// columns are the kinds of outcome in the table, besides "parsed".
var columns = []string{"damaged", "password required", "over a limit", "time", "memory", "no text", "needs a program", "not a readable text", "unreadable text encoding", "the parser crashed"}

func (d *damager) print(exts []string, total int) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "format\tfiles\tparsed\tdamaged\tpassword\tlimit\ttime\tmemory\tno text\tprogram\tbinary\tencoding\tcrashed\tslowest s\t")
	sum := outcomes{kinds: map[string]int{}}
	line := func(name string, o *outcomes) {
		fmt.Fprintf(w, "%s\t%d\t%d\t", name, o.files, o.documents)
		for _, c := range columns {
			fmt.Fprintf(w, "%d\t", o.kinds[c])
		}
		fmt.Fprintf(w, "%.1f\t\n", o.slowest.Seconds())
	}
	for _, ext := range exts {
		o := d.rows[ext]
		if o == nil {
			continue
		}
		line(ext, o)
		sum.files += o.files
		sum.documents += o.documents
		sum.slowest = max(sum.slowest, o.slowest)
		for k, n := range o.kinds {
			sum.kinds[k] += n
		}
	}
	line("all", &sum)
	w.Flush()
	d.t.Logf("%d files; workers: %d started, at most %d MiB in memory\n%s", total, d.pool.Started(), d.pool.Peak()>>20, b.String())
}

// damages are the ways to damage a file.
var damages = []struct {
	name   string
	damage func(*rand.Rand, seed) []byte
}{
	{"truncated", func(r *rand.Rand, s seed) []byte { return s.data[:r.IntN(len(s.data))] }},
	{"bytes", func(r *rand.Rand, s seed) []byte { return changed(r, s.data, 1+r.IntN(50)) }},
	{"inner", inner},
	{"block", block},
	{"nested", nested},
	{"start", func(r *rand.Rand, s seed) []byte {
		n := min(len(s.data), 64)
		return slices.Concat(changed(r, s.data[:n], 1+r.IntN(4)), s.data[n:])
	}},
	{"bomb", bomb},
	{"repeated", func(r *rand.Rand, s seed) []byte {
		unit := s.data[r.IntN(len(s.data)):]
		unit = unit[:min(len(unit), 1+r.IntN(200))]
		return slices.Concat(s.data, bytes.Repeat(unit, (1<<uint(10+r.IntN(12)))/len(unit)))
	}},
}

// changed returns data with n bytes changed.
func changed(r *rand.Rand, data []byte, n int) []byte {
	data = slices.Clone(data)
	for range n {
		if len(data) > 0 {
			data[r.IntN(len(data))] = byte(r.IntN(256))
		}
	}
	return data
}

// block removes, doubles or clears a part of a file.
func block(r *rand.Rand, s seed) []byte {
	from := r.IntN(len(s.data))
	to := min(len(s.data), from+1+r.IntN(4096))
	switch r.IntN(3) {
	case 0:
		return slices.Concat(s.data[:from], s.data[to:])
	case 1:
		return slices.Concat(s.data[:to], s.data[from:])
	}
	return slices.Concat(s.data[:from], make([]byte, to-from), s.data[to:])
}

// inner damages the files inside a ZIP archive, so that the archive is intact. Other files get
// changed bytes.
func inner(r *rand.Rand, s seed) []byte {
	return rewritten(s, func(name string, data []byte) []byte {
		switch r.IntN(4) {
		case 0:
			return data[:r.IntN(len(data)+1)]
		case 1:
			return changed(r, data, 1+r.IntN(20))
		}
		return data
	}, func() []byte { return changed(r, s.data, 200) })
}

// rewritten returns a ZIP archive with its files changed, or the result of otherwise.
func rewritten(s seed, change func(name string, data []byte) []byte, otherwise func() []byte) []byte {
	z, err := zip.NewReader(bytes.NewReader(s.data), int64(len(s.data)))
	if err != nil {
		return otherwise()
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			return otherwise()
		}
		data, err := io.ReadAll(in)
		if err != nil {
			return otherwise()
		}
		out, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Deflate})
		if err != nil {
			return otherwise()
		}
		if _, err := out.Write(change(f.Name, data)); err != nil {
			return otherwise()
		}
	}
	if w.Close() != nil {
		return otherwise()
	}
	return b.Bytes()
}

// nested puts a file into archives in archives, some of them damaged.
func nested(r *rand.Rand, s seed) []byte {
	data, name := s.data, s.name
	for i := range 1 + r.IntN(12) {
		data = packed(name, data)
		name = fmt.Sprintf("%d.zip", i)
		if r.IntN(6) == 0 {
			data = changed(r, data, 1)
		}
	}
	return data
}

func packed(name string, data []byte) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	out, err := w.Create(name)
	if err != nil {
		return nil
	}
	if _, err := out.Write(data); err != nil {
		return nil
	}
	if _, err := w.Create("empty.txt"); err != nil {
		return nil
	}
	if w.Close() != nil {
		return nil
	}
	return b.Bytes()
}

// bomb makes a file that unpacks to much more, or one with deep nesting.
func bomb(r *rand.Rand, s seed) []byte {
	large := 16 << uint(20+r.IntN(3))
	return rewritten(s, func(name string, data []byte) []byte {
		if !strings.HasSuffix(name, ".xml") && !strings.HasSuffix(name, "html") && r.IntN(3) > 0 {
			return data
		}
		at := bytes.LastIndexByte(data, '<')
		if at < 0 {
			return bytes.Repeat([]byte("0"), large)
		}
		switch r.IntN(3) {
		case 0:
			return slices.Concat(data[:at], bytes.Repeat([]byte(" "), large), data[at:])
		case 1:
			return slices.Concat(data[:at], bytes.Repeat([]byte("<a>"), 200_000), data[at:])
		}
		from := bytes.IndexByte(data, '>') + 1
		if from > at {
			return data
		}
		return slices.Concat(data[:at], bytes.Repeat(data[from:at], min(1000, 1+(8<<20)/(at-from+1))), data[at:])
	}, func() []byte {
		units := []string{"<div>", "[", "{\"a\":", "> ", "- ", "(", "<<", "* a\n ", "\\", "{\\", "|a", "\"", "\n\n"}
		unit := units[r.IntN(len(units))]
		at := r.IntN(len(s.data))
		return slices.Concat(s.data[:at], bytes.Repeat([]byte(unit), (1<<20)/len(unit)), s.data[at:])
	})
}

// seeds returns undamaged files by extension.
func seeds(t *testing.T) map[string][]seed {
	t.Helper()
	all := map[string][]seed{}
	add := func(name string, data []byte) {
		if len(data) > 0 && len(data) < 8<<20 {
			ext := strings.ToLower(filepath.Ext(name))
			all[ext] = append(all[ext], seed{name, data})
		}
	}
	for _, s := range append(made(t), pictures(t)...) {
		add(s.name, s.data)
	}
	patterns := []string{"../../parse/testdata/*.*", "../../parse/testdata/*/*.*"}
	if shared := os.Getenv("ASSAY_TESTDATA"); shared != "" {
		patterns = append(patterns, filepath.Join(shared, "data/parsing/*/sources/*"))
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(files)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				continue // a folder
			}
			add(filepath.Base(file), data)
		}
	}
	delete(all, "")
	return all
}

// made returns small files of the formats that can be written here.
func made(t *testing.T) []seed {
	t.Helper()
	html := "<html><head><title>T</title></head><body><h1>One</h1><p>Some <b>words</b>.</p><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table><ul><li>x<li>y</ul></body></html>"
	md := "---\ntitle: T\ndate: 2024-01-02\n---\n# One\n\nSome *words* and [a link](x).\n\n- a\n  - b\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```go\ncode\n```\n"
	mail := "From: a@b.c\nTo: d@e.f\nSubject: Words\nDate: Tue, 2 Jan 2024 10:20:30 +0100\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/html\n\n" + html + "\n--x\nContent-Type: text/csv; name=a.csv\nContent-Disposition: attachment; filename=a.csv\n\na,b\n1,2\n--x--\n"
	office := map[string][]seed{
		"a.docx": {{"[Content_Types].xml", []byte(`<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`)}, {"word/document.xml", []byte(`<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>words</w:t></w:r></w:p></w:body></w:document>`)}},
		"a.zip":  {{"one.md", []byte(md)}, {"two/mail.eml", []byte(mail)}, {"three.html", []byte(html)}},
	}
	all := []seed{
		{"a.html", []byte(html)}, {"a.md", []byte(md)}, {"a.eml", []byte(mail)},
		{"a.mbox", []byte("From a@b.c Tue Jan  2 10:20:30 2024\n" + mail + "\nFrom a@b.c Tue Jan  2 10:20:30 2024\n" + mail)},
		{"a.txt", []byte("Title\n=====\n\nSome words.\n\n- a\n- b\n\n    code\n")},
		{"a.rst", []byte("One\n===\n\nSome ``words``.\n\n.. note:: x\n\n== ==\na  b\n== ==\n1  2\n== ==\n")},
		{"a.csv", []byte("a,b\n1,\"2\n3\"\n4,5\n")},
		{"a.json", []byte(`{"title": "T", "list": [{"text": "some words here"}, 1, null]}`)},
		{"a.jsonl", []byte("{\"id\": 1, \"text\": \"some words\"}\n{\"id\": 2, \"text\": \"more words\"}\n")},
		{"a.go", []byte("// Package a is one.\npackage a\n\n// F does it.\nfunc F() {}\n")},
		{"a.py", []byte("\"\"\"Some words about this module.\"\"\"\n\ndef f(a):\n    return a\n")},
	}
	for name, members := range office {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, m := range members {
			out, err := w.Create(m.name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := out.Write(m.data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		all = append(all, seed{name, b.Bytes()})
	}
	var archive, packed bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, s := range all[:3] {
		if err := cmp.Or(w.WriteHeader(&tar.Header{Name: s.name, Size: int64(len(s.data)), Mode: 0o644}), second(w.Write(s.data))); err != nil {
			t.Fatal(err)
		}
	}
	z := gzip.NewWriter(&packed)
	if err := cmp.Or(w.Close(), second(z.Write(archive.Bytes())), z.Close()); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b seed) int { return cmp.Compare(a.name, b.name) })
	return append(all, seed{"a.tar", archive.Bytes()}, seed{"a.tgz", packed.Bytes()})
}

func second(_ int, err error) error { return err }
