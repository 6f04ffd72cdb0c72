package sqlite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ramdisk"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
	"github.com/assay-rag/assay/store/storetest"
)

// childVariable is the environment variable that names the role of this binary when a test starts
// it as a child process.
const childVariable = "ASSAY_STORE_CHILD"

func TestMain(m *testing.M) {
	ramdisk.Use()
	role := os.Getenv(childVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := runChild(context.Background(), role, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runChild(ctx context.Context, role string, args []string) error {
	dir := args[0]
	switch role {
	case "put":
		return childPut(ctx, dir, args[1])
	case "append":
		return childAppend(ctx, dir, args[1], args[2])
	case "acts":
		return childActs(ctx, dir, args[1], args[2])
	case "uncollected":
		return childUncollected(ctx, dir, args[1])
	case "create":
		return childCreate(ctx, dir, args[1])
	case "delete":
		return childDelete(ctx, dir)
	case "readonly":
		return childReadOnly(ctx, dir)
	case "spend":
		return childSpend(ctx, dir, args[1])
	case "compete":
		return childCompete(ctx, dir, args[1])
	}
	return errors.New("no such role")
}

// childCommand returns a command that runs this binary as a child process.
func childCommand(role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	if _, err := os.Stat(cmd.Path); err != nil {
		cmd = exec.Command(os.Args[0], args...)
	}
	cmd.Env = append(os.Environ(), childVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// crashEntry returns a document whose text is determined by its number and generation.
func crashEntry(number, generation int) store.Entry {
	line := fmt.Sprintf("document %d, generation %d\n", number, generation)
	return storetest.Entry("crash", fmt.Sprintf("/%06d", number), strings.Repeat(line, 1+number%17))
}

// crashVectors returns vectors of the entries' passages, determined by the passages' words.
func crashVectors(entries ...store.Entry) []store.Vector {
	var all []store.Vector
	for _, e := range entries {
		for _, c := range e.Chunks {
			if c.Kind == assay.ChunkSection {
				continue
			}
			p := assay.Passage{Chunk: c, Title: e.Document.Title, Text: e.Document.Text[c.Start:c.End]}
			all = append(all, crashVector(p.Hash()))
		}
	}
	return all
}

func crashVector(hash string) store.Vector {
	return store.Vector{Hash: hash, Values: []float32{1, float32(hash[0]), float32(hash[31])}}
}

// embedRest stores the missing vectors in one transaction.
func embedRest(ctx context.Context, w store.Writer) error {
	var rest []store.Vector
	for p, err := range w.Unembedded(ctx, "m", 0) {
		if err != nil {
			return err
		}
		rest = append(rest, crashVector(p.Hash()))
	}
	_, err := w.PutVectors(ctx, "m", rest...)
	return err
}

// childPut puts pairs of new documents and a new generation of document 0, in one transaction each,
// followed by their vectors in another. It prints each number once both are acknowledged. It starts
// by adding missing vectors.
func childPut(ctx context.Context, dir, first string) error {
	n, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	t, err := created(s, ctx, "crash")
	if err != nil {
		return err
	}
	w, err := t.Writer(ctx)
	if err != nil {
		return err
	}
	if err := embedRest(ctx, w); err != nil {
		return err
	}
	for ; ; n += 2 {
		entries := []store.Entry{crashEntry(n, 0), crashEntry(n+1, 0), crashEntry(0, n)}
		if _, err := w.Put(ctx, entries...); err != nil {
			return err
		}
		if _, err := w.PutVectors(ctx, "m", crashVectors(entries...)...); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// childAppend creates or acquires a run and appends to it. It prints each ordinal once it is
// acknowledged.
func childAppend(ctx context.Context, dir, run, first string) error {
	n, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	t, err := created(s, ctx, "crash")
	if err != nil {
		return err
	}
	l, err := t.Runs().Acquire(ctx, run)
	if errors.Is(err, assay.ErrNotFound) {
		l, err = t.Runs().Create(ctx, assay.Run{ID: run, Question: "?"})
	}
	if err != nil {
		return err
	}
	for ; ; n++ {
		rec, err := l.Append(ctx, crashRecord(n))
		if err != nil {
			return err
		}
		if rec.Ordinal != n {
			return fmt.Errorf("ordinal %d, want %d", rec.Ordinal, n)
		}
		fmt.Println(n)
	}
}

func crashRecord(n int) assay.Record {
	text := strings.Repeat(fmt.Sprintf("result %d ", n%5), 100)
	return assay.Record{
		Path: fmt.Sprintf("step[%d]", n), Kind: assay.StepSearch,
		Input: json.RawMessage(strconv.Itoa(n)), Output: json.RawMessage(strconv.Quote(text)),
	}
}

// childCreate creates a run as if on the named machine, and waits to be killed.
func childCreate(ctx context.Context, dir, machine string) error {
	var opts []Option
	if machine != "" {
		opts = append(opts, Option{func(o *relational.Options) { o.Host = relational.Host{Machine: machine, Boot: machine} }})
	}
	s, err := Open(ctx, dir, opts...)
	if err != nil {
		return err
	}
	t, err := created(s, ctx, "crash")
	if err != nil {
		return err
	}
	l, err := t.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
	if err != nil {
		return err
	}
	if _, err := l.Append(ctx, crashRecord(0)); err != nil {
		return err
	}
	if _, err := t.Writer(ctx); err != nil {
		return err
	}
	fmt.Println(os.Getpid())
	select {}
}

// A crasher starts child processes and kills them.
type crasher struct {
	t   *testing.T
	dir string
	rng *rand.Rand
}

func newCrasher(t *testing.T, seed uint64) crasher {
	return crasher{t: t, dir: filepath.Join(t.TempDir(), "data"), rng: rand.New(rand.NewPCG(seed, seed))}
}

// start starts a child and returns it with a scanner of its output lines.
func (c crasher) start(role string, args ...string) (*exec.Cmd, *bufio.Scanner) {
	c.t.Helper()
	cmd := childCommand(role, append([]string{c.dir}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// kill kills the child at a random moment and returns the last number that it printed; the pipe
// keeps everything written until then. ok is false if it printed none. One child in five is killed
// in its first 30 ms, while it still opens the store. The others are killed within 2 ms after they
// have printed a few numbers.
func (c crasher) kill(cmd *exec.Cmd, lines *bufio.Scanner) (last int, ok bool) {
	c.t.Helper()
	say := func() bool {
		if !lines.Scan() {
			return false
		}
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			c.t.Fatalf("a child said %q", lines.Text())
		}
		last, ok = n, true
		return true
	}
	if c.rng.IntN(5) == 0 {
		time.Sleep(time.Duration(c.rng.IntN(30_000)) * time.Microsecond)
	} else {
		for range 1 + c.rng.IntN(12) {
			say()
		}
		time.Sleep(time.Duration(c.rng.IntN(2_000)) * time.Microsecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	for say() {
	}
	_ = cmd.Wait() // "signal: killed"
	return last, ok
}

// childReadOnly tries all operations on a data directory that it may not write.
func childReadOnly(ctx context.Context, dir string) error {
	if os.Geteuid() == 0 {
		return errors.New("root may write anything")
	}
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	t, err := created(s, ctx, "acme")
	if err != nil {
		return err
	}
	if !t.ReadOnly() {
		return errors.New("it was not found to be read-only")
	}
	var all []string
	for c, err := range t.Content().Changes(ctx, 0) {
		if err != nil {
			return err
		}
		all = append(all, c.Document.Text)
	}
	records, err := t.Runs().Records(ctx, "run")
	if err != nil {
		return err
	}
	list, err := t.Runs().List(ctx, 0)
	if err != nil {
		return err
	}
	fmt.Printf("%q, %d records, %d runs\n", all, len(records), len(list))
	_, writerErr := t.Writer(ctx)
	_, createErr := t.Runs().Create(ctx, assay.Run{ID: "new"})
	_, acquireErr := t.Runs().Acquire(ctx, "run")
	_, tenantErr := created(s, ctx, "new")
	_, openErr := Open(ctx, filepath.Join(dir, tenantsName, "new", "deep"))
	for name, err := range map[string]error{
		"Writer": writerErr, "Create": createErr, "Acquire": acquireErr, "Delete": t.Runs().Delete(ctx, "run", store.Act{Kind: "run.deleted"}), "a new tenant": tenantErr, "a new directory": openErr,
	} {
		if !errors.Is(err, assay.ErrReadOnly) {
			return fmt.Errorf("%s = %v, want an error of kind %q", name, err, assay.ErrReadOnly)
		}
	}
	if err := systemIsRead(ctx, s); err != nil {
		return err
	}
	return t.Close()
}

// systemIsRead checks that the system of a store that cannot be written is read, or fails with another
// error than that there is none.
func systemIsRead(ctx context.Context, s *Store) error {
	sys, err := s.System(ctx)
	if errors.Is(err, assay.ErrNotFound) {
		return fmt.Errorf("there is a system: %w", err)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return nil
	}
	items, err := sys.Registry().Items(ctx, "tenant")
	if err == nil && len(items) != 1 {
		err = fmt.Errorf("the system has %d tenants, want 1", len(items))
	}
	return errors.Join(err, sys.Close())
}
