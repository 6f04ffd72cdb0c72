package opensearch

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// TestKill kills one node after another while documents are flushed and searched. Every search must
// succeed and find what was flushed before, and nothing may be lost.
func TestKill(t *testing.T) {
	rig := os.Getenv("ASSAY_TEST_OPENSEARCH_RIG")
	if rig == "" {
		t.Skip("ASSAY_TEST_OPENSEARCH_RIG is not set; run the test by scripts/opensearch")
	}
	s := indextest.NewSource("a")
	cluster, tenant := connect(t, nil), t.TempDir()
	writer, reader := cluster.open(t, tenant, s), cluster.open(t, tenant, s)
	k := &killing{t: t, source: s, writer: writer, reader: reader}
	k.write()
	green(t, cluster)
	stop := k.start()
	for i := range indextest.Rounds(1, 3, 20) {
		name := fmt.Sprint("n", 1+i%3)
		before := k.written.Load()
		kill(t, filepath.Join(rig, name+".pid"))
		for k.written.Load() < before+5 && !t.Failed() { // the others go on
			k.write()
		}
		green(t, cluster)
		t.Logf("%s killed: %d searches, %d documents, %d flushes repeated", name, k.searches.Load(), k.written.Load(), k.repeated)
	}
	stop()
	flush(t, writer)
	want := int(k.written.Load())
	wantNeedles(t, reader, want)
	near, err := reader.Nearest(t.Context(), everyone, assay.Query{Limit: want}, vector)
	if err != nil || len(near.Hits) != want {
		t.Errorf("%d vectors, %v, want %d", len(near.Hits), err, want)
	}
	indextest.Check(t, writer, s, 1, 5)
}

var vector = index.Vector{Model: "m", Metric: index.Cosine, Values: []float32{1, 1}}

// killing writes and searches while nodes are killed.
type killing struct {
	t              *testing.T
	source         *indextest.Source
	writer, reader *Index
	written        atomic.Int64 // documents flushed
	searches       atomic.Int64
	repeated       int
}

// write flushes one more document. A flush may fail while the cluster elects a manager, and is then
// repeated, as the owner of the index does.
func (k *killing) write() {
	n := k.written.Load() + 1
	e := needle(fmt.Sprint("d", n), 1)
	k.source.Put(e)
	k.source.PutVectors("m", map[string][]float32{e.Chunks[0].ID: {1, float32(n)}})
	for {
		err := k.writer.Flush(k.t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, assay.ErrUnavailable) {
			k.t.Error(err)
			return
		}
		k.repeated++
	}
	k.written.Store(n)
}

// start searches until the returned function is called.
func (k *killing) start() (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := k.search(); err != nil {
					k.t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		close(done)
		group.Wait()
	}
}

// search checks that everything is found that had been flushed before, except for one document that
// may be changing.
func (k *killing) search() error {
	least := int(k.written.Load())
	result, err := k.reader.Search(k.t.Context(), everyone, assay.Query{Text: "needle", Limit: 5})
	if err != nil {
		return fmt.Errorf("search after %d searches: %w", k.searches.Load(), err)
	}
	near, err := k.reader.Nearest(k.t.Context(), everyone, assay.Query{Limit: 5}, vector)
	if err != nil {
		return fmt.Errorf("search by vector after %d searches: %w", k.searches.Load(), err)
	}
	if result.Chunks < least || near.Chunks < least || near.Total < least {
		return fmt.Errorf("%d chunks, %d chunks and %d vectors are found after %d were flushed", result.Chunks, near.Chunks, near.Total, least)
	}
	k.searches.Add(1)
	return nil
}

// kill kills the process whose ID is in a file.
func kill(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// green waits until all three nodes are there and every shard has all its copies.
func green(t *testing.T, c *Cluster) {
	t.Helper()
	for {
		var health struct {
			Status string
			Nodes  int `json:"number_of_nodes"`
		}
		err := c.do(t.Context(), http.MethodGet, "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=20s", nil, &health)
		if err == nil && health.Status == "green" && health.Nodes == 3 {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}
