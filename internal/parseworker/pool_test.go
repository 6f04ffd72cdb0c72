package parseworker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdftest"
	"github.com/assay-rag/assay/parse"
)

// TestMain runs the test binary as a worker if the environment says so.
func TestMain(m *testing.M) {
	switch os.Getenv("PARSEWORKER_TEST") {
	case "parse":
		Serve()
	case "script":
		os.Exit(serve(scripted))
	case "garbage":
		fmt.Println("this is not a worker")
		os.Exit(0)
	case "silent":
		select {}
	case "parent":
		walkHanging()
	}
	goleak.VerifyTestMain(m)
}

func testPool(t *testing.T, kind string) *Pool {
	t.Helper()
	p := &Pool{Env: []string{"PARSEWORKER_TEST=" + kind}, Workers: 2}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// compilePDFium compiles PDFium into the cache of this user, from which the workers take it. In a worker
// it would count towards the limits of time and memory, of which it needs much under the race detector.
func compilePDFium(t *testing.T) {
	t.Helper()
	var f pdftest.File
	f.Page(200, 100).Text(20, 50, 12, false, "one page")
	if _, err := parse.Parse(t.Context(), parse.Input{Name: "a.pdf", Data: f.Bytes()}); err != nil {
		t.Fatal(err)
	}
}

// scripted is a walk whose source is a script: lines of a path and a command.
func scripted(ctx context.Context, in parse.Input, enter func(string) bool, yield func(parse.Parsed) error) error {
	left := "\x00"
	for line := range strings.Lines(string(in.Data)) {
		path, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if path == "." {
			path = ""
		}
		if strings.HasPrefix(path, left+"!/") {
			continue
		}
		if path != "" && !enter(path) {
			left = path
			continue
		}
		if err := perform(in, path, command, yield); err != nil {
			return err
		}
	}
	return nil
}

// Four steps take longer than shortTime, and each takes much less, also on a busy machine.
const (
	shortTime = 6 * time.Second // the time for a document or a step, where a test lets it end
	stepTime  = 2 * time.Second
)

var (
	kept     [][]byte
	spun     int
	openPipe func(file string) // nil on systems without named pipes
)

// walkHanging walks a source that hangs, in a process that a test kills.
func walkHanging() {
	p := &Pool{Env: []string{"PARSEWORKER_TEST=script", "PARSEWORKER_PIPE=" + os.Getenv("PARSEWORKER_PIPE")}, Timeout: time.Hour}
	err := p.Walk(context.Background(), parse.Input{Name: "x", Data: []byte(". ok\na hang")}, func(parse.Parsed) error { return nil })
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// perform executes one command of a script.
func perform(in parse.Input, path, command string, yield func(parse.Parsed) error) error {
	switch command {
	case "hang":
		if openPipe != nil {
			openPipe(os.Getenv("PARSEWORKER_PIPE"))
		}
		for n := 0; ; n++ {
			spun = n
		}
	case "panic":
		go panic("index out of range [7]\nsecond line")
		select {}
	case "leak":
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			kept = append(kept, b)
		}
	case "grab":
		b := make([]byte, 1<<30)
		for i := range b {
			b[i] = 1
		}
		kept = append(kept, b)
	case "exit":
		os.Exit(3)
	case "stack":
		recurse(1)
	case "garbage":
		os.NewFile(1, "stdout").Write([]byte("warning: something\n"))
		select {}
	case "huge":
		os.NewFile(1, "stdout").Write(binary.LittleEndian.AppendUint32([]byte{magic, kindParsed}, 1<<31))
		select {}
	case "partial":
		os.NewFile(1, "stdout").Write(append(binary.LittleEndian.AppendUint32([]byte{magic, kindParsed}, 1000), "{}"...))
		os.Exit(0)
	case "steps", "stepshang":
		for range 4 {
			time.Sleep(stepTime)
			in.Progress()
		}
		if command == "stepshang" {
			select {}
		}
	case "endless":
		for {
			time.Sleep(100 * time.Millisecond)
			in.Progress()
		}
	case "until":
		if left := time.Until(in.Until); left < time.Minute || left > time.Hour {
			panic(left)
		}
	case "print":
		fmt.Println("a library prints to standard output")
	case "after":
		if err := yield(parse.Parsed{Path: path, Document: parse.Document{Text: "text of " + path}}); err != nil {
			return err
		}
		if len(os.Getenv("PARSEWORKER_ONCE")) > 0 {
			if f, err := os.OpenFile(os.Getenv("PARSEWORKER_ONCE"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				f.Close()
				os.Exit(4)
			}
		}
		return nil
	}
	return yield(parse.Parsed{Path: path, Document: parse.Document{Text: "text of " + path}})
}

func recurse(n int) int {
	if n < 0 {
		return 0
	}
	var frame [1024]byte
	frame[n%1024] = byte(n)
	return recurse(n+1) + int(frame[n%512])
}

// A got is a document that Walk has yielded: its path with its text or its error.
func walkAll(t *testing.T, ctx context.Context, p *Pool, in parse.Input) (got []string, errs []error, err error) {
	t.Helper()
	err = p.Walk(ctx, in, func(d parse.Parsed) error {
		if d.Err != nil {
			got = append(got, d.Path+": "+d.Err.Error())
			errs = append(errs, d.Err)
			return nil
		}
		got = append(got, d.Path+": "+d.Document.Text)
		return nil
	})
	return got, errs, err
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		timeout      time.Duration
		total        time.Duration // 0: 2.5 times timeout
		want         []string      // of the path and the text or the error, a prefix
		kind         error
	}{
		{name: "prints", script: ". print", want: []string{": text of "}},
		{name: "hang", script: ". hang", timeout: shortTime, want: []string{": parse x: parsing took more than 6s: over a limit"}, kind: parse.ErrLimit},
		{name: "steps", script: ". steps\na ok", timeout: shortTime, total: time.Hour, want: []string{": text of ", "a: text of a"}},
		{
			name: "hang after steps", script: ". ok\na stepshang\nb ok", timeout: shortTime, total: time.Hour, kind: parse.ErrLimit,
			want: []string{": text of ", "a: parse a: parsing took more than 6s: over a limit", "b: text of b"},
		},
		{name: "endless steps", script: ". endless", timeout: shortTime, want: []string{": parse x: parsing took more than 15s: over a limit"}, kind: parse.ErrLimit},
		{name: "until", script: ". until", want: []string{": text of "}},
		{name: "panic", script: ". panic", want: []string{": parse x: panic: index out of range [7]: the parser crashed"}, kind: parse.ErrCrash},
		{name: "leak", script: ". leak", want: []string{": parse x: parsing needed more than 512 MiB of memory: over a limit"}, kind: parse.ErrLimit},
		{name: "grab", script: ". grab", want: []string{": parse x: parsing needed more than 512 MiB of memory: over a limit"}, kind: parse.ErrLimit},
		{name: "exit", script: ". exit", want: []string{": parse x: its process ended with exit status 3: the parser crashed"}, kind: parse.ErrCrash},
		{name: "stack", script: ". stack", want: []string{": parse x: fatal error: stack overflow: the parser crashed"}, kind: parse.ErrCrash},
		{name: "garbage", script: ". garbage", want: []string{": parse x: damaged message: the parser crashed"}, kind: parse.ErrCrash},
		{name: "huge", script: ". huge", want: []string{": parse x: damaged message: the parser crashed"}, kind: parse.ErrCrash},
		{name: "partial", script: ". partial", want: []string{": parse x: its process ended with exit status 0: the parser crashed"}, kind: parse.ErrCrash},
		{
			name: "one bad part", script: ". ok\na ok\nb ok\nb!/1 ok\nb!/2 panic\nb!/3 ok\nc hang\nd ok", timeout: shortTime,
			want: []string{": text of ", "a: text of a", "b: text of b", "b!/1: text of b!/1", "b!/2: parse 2: panic: index out of range [7]: the parser crashed",
				"b!/3: text of b!/3", "c: parse c: parsing took more than 6s: over a limit", "d: text of d"},
		},
		{
			name: "bad container", script: ". ok\na ok\nb exit\nb!/1 ok\nc ok",
			want: []string{": text of ", "a: text of a", "b: parse b: its process ended with exit status 3: the parser crashed", "c: text of c"},
		},
		{
			name: "total", script: ". ok\na hang\nb hang\nc hang\nd ok", timeout: shortTime,
			want: []string{": text of ", "a: parse a: parsing took", "b: parse b: parsing took", ": parse x: the files in it took more than 15s to parse: over a limit"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.name == "stack" && raceEnabled {
				t.Skip("the race detector multiplies the memory")
			}
			p := testPool(t, "script")
			p.Timeout, p.Total = tt.timeout, cmp.Or(tt.total, tt.timeout*5/2)
			got, errs, err := walkAll(t, t.Context(), p, parse.Input{Name: "x", Data: []byte(tt.script)})
			if err != nil {
				t.Fatal(err)
			}
			same := slices.EqualFunc(got, tt.want, strings.HasPrefix)
			if !same {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			for _, err := range errs {
				if tt.kind != nil && !errors.Is(err, tt.kind) {
					t.Errorf("%v is not of the kind %v", err, tt.kind)
				}
			}
			if p.Peak() > DefaultMemory {
				t.Errorf("a worker had %d MiB in memory", p.Peak()>>20)
			}
			t.Logf("peak %d MiB", p.Peak()>>20)
			if again, _, err := walkAll(t, t.Context(), p, parse.Input{Name: "y", Data: []byte(". ok")}); err != nil || len(again) != 1 || again[0] != ": text of " {
				t.Errorf("the next source: %q, %v", again, err)
			}
		})
	}
}

// TestManyFailures checks that a source with many documents that crash the worker ends.
func TestManyFailures(t *testing.T) {
	p := testPool(t, "script")
	var script strings.Builder
	script.WriteString(". ok\n")
	for i := range 3 * maxFailures {
		fmt.Fprintf(&script, "%d exit\n", i)
	}
	got, errs, err := walkAll(t, t.Context(), p, parse.Input{Name: "x", Data: []byte(script.String())})
	if err != nil || len(got) != maxFailures+2 {
		t.Fatalf("%d documents, %v", len(got), err)
	}
	if last := errs[len(errs)-1]; !errors.Is(last, parse.ErrLimit) || !strings.HasPrefix(got[len(got)-1], ": ") {
		t.Errorf("the last value is %q", got[len(got)-1])
	}
	if p.Started() != maxFailures {
		t.Errorf("%d processes were started, want %d", p.Started(), maxFailures)
	}
}

// TestRetry checks that no part is lost or yielded twice if a worker ends between two documents,
// and that a worker that served other sources is not the reason for a failure.
func TestRetry(t *testing.T) {
	p := testPool(t, "script")
	p.Env = append(p.Env, "PARSEWORKER_ONCE="+filepath.Join(t.TempDir(), "once"))
	got, _, err := walkAll(t, t.Context(), p, parse.Input{Name: "x", Data: []byte(". ok\na ok\na!/1 after\na!/1!/z ok\na!/2 ok\nb ok")})
	want := []string{": text of ", "a: text of a", "a!/1: text of a!/1", "a!/1!/z: text of a!/1!/z", "a!/2: text of a!/2", "b: text of b"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if p.Started() != 2 {
		t.Errorf("%d processes, want 2", p.Started())
	}
}

func TestNotAWorker(t *testing.T) {
	p := testPool(t, "garbage")
	if err := p.Walk(t.Context(), parse.Input{Name: "x", Data: []byte("x")}, func(parse.Parsed) error { return nil }); err == nil {
		t.Error("a program that is not a worker was accepted")
	}
	p.Command = []string{filepath.Join(t.TempDir(), "missing")}
	if err := p.Walk(t.Context(), parse.Input{Name: "x", Data: []byte("x")}, func(parse.Parsed) error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that does not exist: %v", err)
	}
}

// TestCancel checks that the end of a context ends Walk and its worker although the parser hangs.
func TestCancel(t *testing.T) {
	p := testPool(t, "script")
	ctx, cancel := context.WithCancel(t.Context())
	err := p.Walk(ctx, parse.Input{Name: "x", Data: []byte(". ok\na hang")}, func(d parse.Parsed) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Walk: %v", err)
	}
	stop := errors.New("stop")
	if err := p.Walk(t.Context(), parse.Input{Name: "x", Data: []byte(". ok\na hang")}, func(parse.Parsed) error { return stop }); err != stop {
		t.Errorf("Walk: %v, want yield's error", err)
	}
}

// TestSame checks that a pool yields the same values as parse.Walk for every file of package parse's
// test data.
func TestSame(t *testing.T) {
	files, err := filepath.Glob("../../parse/*.go")
	if err != nil {
		t.Fatal(err)
	}
	docs, _ := filepath.Glob("../../docs/*.md")
	files = append(files, docs...)
	for name, text := range map[string]string{
		"t.csv":  "name,value\na,1\nb,\"2\nlines\"\n",
		"t.html": "<html><head><title>T</title><meta name=author content=A></head><body><h1>H</h1><table><tr><th>a<th>b<tr><td colspan=2>c</table></body></html>",
		"t.md":   "---\ndate: 2024-01-02\ntags: [a, b]\nn: 3.5\nempty: []\n---\n# H\n\n- a\n  - b\n\n| a | b |\n| - | - |\n| 1 | é |\n",
		"t.bin":  "\x00\x01\x02",
		"t.json": `{"a": [1, 2, {"b": "c"}]}`,
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if shared := os.Getenv("ASSAY_TESTDATA"); shared != "" {
		more, _ := filepath.Glob(filepath.Join(shared, "data/parsing/*/sources/*"))
		files = append(files, more...)
	}
	p := testPool(t, "parse")
	p.Timeout = time.Minute
	n := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || testing.Short() && len(data) > 1<<20 {
			continue // a folder
		}
		in := parse.Input{Name: filepath.Base(file), Data: data, Passwords: []string{"secret"}}
		collect := func(walk func(context.Context, parse.Input, func(parse.Parsed) error) error) (all []parse.Parsed) {
			if err := walk(t.Context(), in, func(d parse.Parsed) error {
				if d.Err != nil {
					d.Err = errors.New(d.Err.Error())
				}
				all = append(all, d)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return all
		}
		want, got := collect(parse.Walk), collect(p.Walk)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s", file, gocmp.Diff(want, got, gocmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })))
		}
		n++
	}
	if n < 3 {
		t.Errorf("only %d files", n)
	}
	if p.Started() > 2 {
		t.Errorf("%d processes were started for %d files", p.Started(), n)
	}
	t.Logf("%d files, peak %d MiB", n, p.Peak()>>20)
}

// TestConcurrent checks that a pool has no more processes than Workers.
func TestConcurrent(t *testing.T) {
	p := testPool(t, "parse")
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			text := strings.Repeat("word"+strconv.Itoa(i)+" ", 1000)
			got, _, err := walkAll(t, t.Context(), p, parse.Input{Name: "x.txt", Data: []byte(text)})
			if err != nil || len(got) != 1 || got[0] != ": "+strings.TrimSpace(text) {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if p.Started() > 2 {
		t.Errorf("%d processes, want at most 2", p.Started())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Walk(t.Context(), parse.Input{}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Walk after Close: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "OPENAI_API_KEY=k", "AWS_SECRET_ACCESS_KEY=k", "LC_ALL=C", "Path=x"})
	if want := []string{"PATH=/bin", "LC_ALL=C", "Path=x"}; !slices.Equal(got, want) {
		t.Errorf("environment = %q, want %q", got, want)
	}
}

func BenchmarkWalk(b *testing.B) {
	var text strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&text, "%d,name %d,%d,some text\n", i, i, i*7)
	}
	in := parse.Input{Name: "x.csv", Data: []byte(text.String())}
	p := &Pool{Env: []string{"PARSEWORKER_TEST=parse"}}
	defer p.Close()
	for _, f := range []struct {
		name string
		walk func(context.Context, parse.Input, func(parse.Parsed) error) error
	}{{"pool", p.Walk}, {"inprocess", parse.Walk}} {
		b.Run(f.name, func(b *testing.B) {
			b.SetBytes(int64(len(in.Data)))
			for b.Loop() {
				if err := f.walk(b.Context(), in, func(p parse.Parsed) error { return p.Err }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	runtime.GC()
}

// TestRender draws a page in a worker, and one of a file that it cannot draw.
func TestRender(t *testing.T) {
	compilePDFium(t)
	var f pdftest.File
	f.Page(200, 100).Text(20, 50, 12, false, "one page")
	p := &Pool{Env: []string{"PARSEWORKER_TEST=parse"}, Workers: 1}
	defer p.Close()
	for _, data := range [][]byte{[]byte("%PDF-1.7 damaged"), f.Bytes()} {
		var got parse.Parsed
		in := parse.Input{Type: "application/pdf", Data: data, Render: &parse.Rendering{Page: 1, Width: 100, Marks: []assay.Rectangle{{Page: 1, X1: 50, Y1: 50}}}}
		if err := p.Walk(t.Context(), in, func(p parse.Parsed) error { got = p; return nil }); err != nil {
			t.Fatal(err)
		}
		if good := bytes.HasPrefix(data, []byte("%PDF-1.7 damaged")); good == (got.Err == nil) || (got.Err == nil) != bytes.HasPrefix(got.Data, []byte("\x89PNG")) {
			t.Errorf("%d bytes of a picture, %v", len(got.Data), got.Err)
		}
	}
	if n := p.Started(); n != 1 {
		t.Errorf("%d workers were started, want 1", n)
	}
}
