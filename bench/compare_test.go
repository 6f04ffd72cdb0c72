package main

import (
	"encoding/binary"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/assay-rag/assay"
)

// TestCompareServers runs the comparison on a very small corpus, without servers.
func TestCompareServers(t *testing.T) {
	for _, name := range []string{"ASSAY_TEST_POSTGRES", "ASSAY_TEST_OPENSEARCH", "ASSAY_TEST_WEAVIATE"} {
		t.Setenv(name, "")
	}
	o, err := parse([]string{"-compare", "-chunks", "500", "-queries", "8", "-rounds", "1", "-asks", "2", "-period", "10ms", "-cache", t.TempDir(), "-dir", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := measure(t.Context(), o, texts(t, 500))
	if err != nil {
		t.Fatal(err)
	}
	value := func(title, row, column string) float64 {
		t.Helper()
		for _, p := range r.Parts {
			for _, v := range p.Values {
				if strings.HasPrefix(p.Title, title) && v.Row == row && v.Column == column {
					return v.Value
				}
			}
		}
		t.Errorf("the report has no %q, %q, %q", title, row, column)
		return 0
	}
	for _, g := range groups {
		if got := value("Vectors", assayName+": "+g.what, "best ten"); got < 0.9 {
			t.Errorf("recall@10, %s, is %.3f", g.what, got)
		}
		if value("Words", assayName+": "+g.what, "min") <= 0 || value("Hybrid", assayName+": "+g.what, "8 clients") <= 0 {
			t.Errorf("searches, %s, took no time", g.what)
		}
	}
	if value("Ingest", "on disk", assayName) <= 0 {
		t.Error("the index has no files")
	}
	value("Ask", assayName, "p50")
	value("Ask", assayName, "answered")
}

// TestSharedSource checks that an index of the source finds what the store has, for those who may see
// it.
func TestSharedSource(t *testing.T) {
	c, err := openCorpus(t.Context(), t.TempDir(), 500, texts(t, 500), false)
	if err != nil {
		t.Fatal(err)
	}
	plain := newSource(c, &vectorSet{2, make([]float32, 2*c.chunks)})
	shared := sharedSource{plain, "m"}
	numbers := shared.numbers()
	if len(numbers) != c.chunks {
		t.Errorf("%d chunks have %d IDs", c.chunks, len(numbers))
	}
	var want []string
	for change, err := range plain.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range stored(change).Chunks {
			want = append(want, chunk.ID)
		}
	}
	seen := make(map[string]int)
	var got []string
	for change, err := range shared.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range change.Chunks {
			got = append(got, chunk.ID)
		}
		for _, g := range groups {
			if access(g.name).Allows("default", change.Document.ACL) {
				seen[g.name]++
			}
		}
		if assay.Local().Access().Allows("default", change.Document.ACL) {
			t.Errorf("document %s is visible to one who is in no group", change.ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Error("the IDs of the chunks differ from those in the store")
	}
	if n := c.documents(); seen[groupAll] != n || seen[groupHalf] < n/3 || seen[groupHalf] > 2*n/3 || seen[groupFew] > n/10 {
		t.Errorf("of %d documents, the groups see %v", n, seen)
	}
	var vectors []string
	for v, err := range shared.Vectors(t.Context(), "m", 0) {
		if err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v.Chunk)
	}
	if !slices.Equal(vectors, want) {
		t.Error("the vectors are not those of the chunks, in their order")
	}
}

func TestFuse(t *testing.T) {
	if got, want := fuse([]string{"a", "b", "c"}, []string{"c", "d"}), []string{"c", "a", "b", "d"}; !slices.Equal(got, want) {
		t.Errorf("the fused list is %v, want %v", got, want)
	}
	if got := fuse(nil, nil); len(got) > 0 {
		t.Errorf("nothing and nothing make %v", got)
	}
}

// TestWeaviateMessages checks the messages against the field numbers of Weaviate's definitions.
func TestWeaviateMessages(t *testing.T) {
	fields := func(message []byte) map[protowire.Number][]byte {
		all := make(map[protowire.Number][]byte)
		if err := eachField(message, func(number protowire.Number, value []byte) error { all[number] = value; return nil }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	object := fields(objectMessage(17, "some text", []string{groupAll, groupFew}, []float32{1, -2}))
	if got := string(object[4]); got != weaviateClass {
		t.Errorf("the collection is %q", got)
	}
	if v := object[6]; len(v) != 8 || math.Float32frombits(binary.LittleEndian.Uint32(v[4:])) != -2 {
		t.Errorf("the vector is %v", v)
	}
	properties := fields(object[3])
	entry := fields(fields(properties[1])[1])
	if string(entry[1]) != "text" || string(fields(entry[2])[3]) != "some text" {
		t.Errorf("the text is %q", entry)
	}
	if seen := fields(properties[6]); string(seen[1]) != groupFew || string(seen[2]) != "seen" {
		t.Errorf("the list of access is %q", seen)
	}
	result := appendMessage(nil, 2, appendString(nil, 1, string(object[1])))
	if got := foundNumbers(appendMessage(appendMessage(nil, 2, result), 2, result)); !slices.Equal(got, []int{17, 17}) {
		t.Errorf("the found numbers are %v", got)
	}
	if err := eachField([]byte{0x0a, 0x05, 1}, func(protowire.Number, []byte) error { return nil }); err == nil {
		t.Error("a cut message was read")
	}
}

// TestWeaviate fills a node and searches it; scripts/weaviate starts one.
func TestWeaviate(t *testing.T) {
	addresses := os.Getenv("ASSAY_TEST_WEAVIATE")
	if addresses == "" {
		t.Skip("ASSAY_TEST_WEAVIATE is not set; run the test by scripts/weaviate")
	}
	cache := t.TempDir()
	c, err := openCorpus(t.Context(), cache, 500, texts(t, 500), false)
	if err != nil {
		t.Fatal(err)
	}
	vectors, _, _, err := chunkVectors(cache, "", 64, c.chunks)
	if err != nil {
		t.Fatal(err)
	}
	w, err := openWeaviate(addresses, os.Getenv("ASSAY_TEST_WEAVIATE_RIG"), sharedSource{newSource(c, vectors), "m"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	for range 2 { // the second time instead of the first
		if err := w.fill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.written(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		scan := newFloatScan(c, vectors)
		exact, err := scan.nearest(vectors.row(3), g.share, 10)
		if err != nil {
			t.Fatal(err)
		}
		near, err := w.nearest(t.Context(), g.name, vectors.row(3))
		if err != nil {
			t.Fatal(err)
		}
		if got := overlap([][]int{exact()}, [][]int{near()}); got < 0.9 && len(exact()) > 0 {
			t.Errorf("%s: recall@10 is %.2f", g.what, got)
		}
		words, err := w.text(t.Context(), g.name, "writer segment")
		if err != nil {
			t.Fatal(err)
		}
		both, err := w.hybrid(t.Context(), g.name, "writer segment", vectors.row(3))
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range slices.Concat(near(), words(), both()) {
			if d, _ := slices.BinarySearch(c.first, uint32(chunk)+1); !slices.Contains(seenBy(d-1), g.name) {
				t.Errorf("%s: chunk %d may not be seen", g.what, chunk)
			}
		}
		if g.share == 1 && (len(words()) < 10 || len(both()) < 10) {
			t.Errorf("%d hits by words, %d by both", len(words()), len(both()))
		}
	}
}

func TestProcesses(t *testing.T) {
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		t.Skip(err)
	}
	pids, err := withChildren(os.Getpid())
	if err != nil || pids[0] != os.Getpid() {
		t.Fatal(pids, err)
	}
	if memory, err := memoryOf(pids); err != nil || memory < 1<<20 {
		t.Errorf("this process has %d bytes of memory, %v", memory, err)
	}
	if _, err := processorTime(pids); err != nil {
		t.Error(err)
	}
	if _, err := processorTime([]int{1 << 30}); err == nil {
		t.Error("a process that does not exist used time")
	}
}
