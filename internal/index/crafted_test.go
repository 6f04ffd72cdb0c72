package index_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// A crafted index has a file that was changed by someone who knows the format, so all checksums are
// correct.
type crafted struct {
	source *indextest.Source
	names  []string
	files  map[string][]byte
}

func newCrafted(t testing.TB) crafted {
	t.Helper()
	c := crafted{source: indextest.NewSource("a"), files: make(map[string][]byte)}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(6, 6))
	ix, err := index.OpenSmall(t.Context(), dir, c.source)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for range 4 {
		for range 6 {
			indextest.Churn(c.source, random, 12)
		}
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := ix.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.names = filesIn(t, dir)
	for _, name := range c.names {
		var err error
		if c.files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// write makes a folder with the index, in which one file is replaced, and returns its path.
func (c crafted) write(t testing.TB, name string, file []byte) string {
	t.Helper()
	dir := t.TempDir()
	for other, data := range c.files {
		if err := os.WriteFile(filepath.Join(dir, other), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := index.Forge(dir, name, file); err != nil {
		t.Fatal(err)
	}
	return dir
}

// chunks returns the IDs of all chunks of the source.
func (c crafted) chunks(t testing.TB) []string {
	t.Helper()
	var ids []string
	for change, err := range c.source.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range change.Chunks {
			ids = append(ids, chunk.ID)
		}
	}
	return ids
}

// try uses the index in all ways. Each operation may return an error or any result.
func (c crafted) try(t testing.TB, dir string, seed uint64) {
	t.Helper()
	allowed := func(err error) {
		t.Helper()
		if err != nil && !errors.Is(err, assay.ErrDamaged) && !errors.Is(err, assay.ErrInvalid) && !errors.Is(err, errInconsistent) {
			t.Errorf("error %v, want ErrDamaged", err)
		}
	}
	source := indextest.NewSource("a")
	source.Restore(c.source)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ix, err := index.OpenSmall(t.Context(), dir, source)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	chunks := c.chunks(t)
	ask := func() {
		for _, p := range []assay.Principal{assay.Local(), {User: "bob"}} {
			g, err := ix.Graph(t.Context(), p.Access(), assay.Query{})
			if allowed(err); err == nil {
				_, err = describe(g, chunks, []string{"e1042", "beta", "os.open", "nobody"})
				allowed(err)
				g.Close()
			}
		}
		for _, q := range []assay.Query{
			{Text: "alpha beta os.Open file_name running naïve Haus", Limit: 1000},
			{Text: "gamma", Limit: 3, Collections: []string{"c1"}, Filter: assay.Filter{Op: assay.OpNotEquals, Key: "year", Value: assay.NumberValue(2022)}},
			{Text: "beta", Limit: 5, Filter: assay.Filter{Op: assay.OpStringContains, Key: "tags", Value: assay.StringValue("old")}},
		} {
			for _, p := range []assay.Principal{assay.Local(), {User: "bob"}} {
				_, err := ix.Search(t.Context(), p.Access(), q)
				allowed(err)
				_, err = ix.Nearest(t.Context(), p.Access(), q, index.Vector{Model: "odd/7", Metric: index.Dot, Values: []float32{1, 2, 3, 4, 5, 6, 7}})
				allowed(err)
			}
		}
	}
	ask()
	random := rand.New(rand.NewPCG(seed, 1))
	for range 3 {
		indextest.Churn(source, random, 12)
		allowed(ix.Flush(t.Context()))
	}
	allowed(ix.Settle(t.Context()))
	ask()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
		t.Errorf("%d MB were allocated", took>>20)
	}
}

// extremes are numbers that a reader must not trust.
var extremes = []uint64{0, 1, 2, 0x7f, 0x80, 0xff, 0x3fff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1}

// craft makes a random change in a file.
func craft(random *rand.Rand, name string, file []byte) {
	if name == "MANIFEST" && random.IntN(4) > 0 { // keep JSON and base64 valid
		for i := random.IntN(len(file)); i < len(file); i++ {
			switch c := file[i]; {
			case '0' <= c && c <= '9':
				file[i] = '0' + byte(random.IntN(10))
				return
			case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '+' || c == '/':
				file[i] = 'A' + byte(random.IntN(26))
				return
			}
		}
	}
	at := random.IntN(len(file))
	if random.IntN(4) == 0 { // the table of sections
		at = len(file) - 1 - random.IntN(min(len(file), 200))
	}
	rest := file[at:]
	switch random.IntN(5) {
	case 0:
		rest[0] ^= 1 << random.IntN(8)
	case 1:
		for i := range min(len(rest), 1+random.IntN(8)) {
			rest[i] = byte(random.Uint32())
		}
	case 2:
		number := binary.LittleEndian.AppendUint64(nil, extremes[random.IntN(len(extremes))])
		copy(rest, number[:[]int{1, 2, 4, 8}[random.IntN(4)]])
	case 3:
		number := binary.AppendUvarint(nil, extremes[random.IntN(len(extremes))])
		copy(rest, number)
	default:
		from := random.IntN(len(file))
		copy(rest, file[from:min(len(file), from+1+random.IntN(64))])
	}
}

// TestCraftedFiles checks that a file with a correct checksum and wrong contents causes an error or
// any answer, but no panic, no endless loop and no huge allocation.
func TestCraftedFiles(t *testing.T) {
	// Not parallel: try measures allocations of the whole process.
	rounds := indextest.Rounds(30, 150, 5000)
	c := newCrafted(t)
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 2))
		name := c.names[random.IntN(len(c.names))]
		file := slices.Clone(c.files[name])
		for range 1 + random.IntN(3) {
			craft(random, name, file)
		}
		t.Run(fmt.Sprint("seed ", seed, " ", filepath.Ext(name)), func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v\n%s", p, stack())
				}
			}()
			c.try(t, c.write(t, name, file), seed)
		})
	}
}

func stack() []byte {
	b := make([]byte, 16<<10)
	return b[:runtime.Stack(b, false)]
}

func FuzzCraftedFiles(f *testing.F) {
	c := newCrafted(f)
	f.Add(uint8(0), uint32(40), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(uint8(1), uint32(4), []byte{0})
	f.Add(uint8(2), uint32(100), []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1})
	f.Fuzz(func(t *testing.T, which uint8, at uint32, patch []byte) {
		name := c.names[int(which)%len(c.names)]
		file := slices.Clone(c.files[name])
		copy(file[int(at)%len(file):], patch)
		c.try(t, c.write(t, name, file), 1)
	})
}
