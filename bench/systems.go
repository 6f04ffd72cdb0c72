package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/opensearch"
	"github.com/assay-rag/assay/internal/index/pgvector"
)

// A system stores a corpus with vectors and lists of access, and searches it. Searches return the best
// chunks that a group may see, as many as top.
type system interface {
	name() string
	fill(ctx context.Context) error   // stores everything, until searches find it
	settle(ctx context.Context) error // waits for what goes on after that
	text(ctx context.Context, group, q string) (answer, error)
	nearest(ctx context.Context, group string, v []float32) (answer, error)
	hybrid(ctx context.Context, group, q string, v []float32) (answer, error)
	size(ctx context.Context) (int64, error) // bytes on disk
	processes() ([]int, error)               // of the servers; none: it works in this process
	close() error
}

// An indexSystem is one of assay's indexes.
type indexSystem struct {
	engine.Index
	title   string
	source  sharedSource
	open    func(ctx context.Context) (engine.Index, error) // once more, for an engine; nil: the engine's own
	settled func(ctx context.Context) error
	bytes   func(ctx context.Context) (int64, error)
	pids    func() ([]int, error)
	ends    []func() error
	number  map[string]int // of a chunk, by its ID; nil until needed
}

// openOwn opens assay's own index in a folder.
func openOwn(ctx context.Context, dir string, source sharedSource) (*indexSystem, error) {
	s, err := index.Open(ctx, dir, source)
	if err != nil {
		return nil, err
	}
	return &indexSystem{
		Index: s, title: assayName, source: source, settled: s.Settle,
		bytes: func(context.Context) (int64, error) { return folderSize(dir) },
		pids:  func() ([]int, error) { return nil, nil },
	}, nil
}

// openPGVector opens the index in the database of a URL, which must be empty.
func openPGVector(ctx context.Context, database string, source sharedSource, probe []float32) (*indexSystem, error) {
	indexes, err := pgvector.Connect(database)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (engine.Index, error) { return indexes.Open(ctx, source) }
	opened, err := indexes.Open(ctx, source)
	if err != nil {
		indexes.Close()
		return nil, err
	}
	x := pgvectorIndex{opened, indexes}
	settle := func(ctx context.Context) error { // the first search has the graph built
		_, err := x.Nearest(ctx, access(groupAll), assay.Query{Limit: 1}, index.Vector{Model: source.model, Metric: index.Cosine, Values: probe})
		return errors.Join(err, x.Settle(ctx))
	}
	processes := func() ([]int, error) {
		pid, err := postmaster(ctx, database)
		if err != nil {
			return nil, err
		}
		return withChildren(pid)
	}
	return &indexSystem{Index: x, title: "pgvector", source: source, open: open, settled: settle, bytes: x.Size, pids: processes}, nil
}

// A pgvectorIndex is the index of a database that it closes.
type pgvectorIndex struct {
	*pgvector.Index
	indexes *pgvector.Database
}

func (x pgvectorIndex) Close() error {
	err := x.Index.Close()
	x.indexes.Close()
	return err
}

// postmaster returns the process ID of a database's server, which runs on this machine.
func postmaster(ctx context.Context, database string) (pid int, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var dir string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&dir); err != nil {
		return 0, err
	}
	data, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(data), "\n")
	return strconv.Atoi(first)
}

// openOpenSearch opens the index in the cluster of three nodes that scripts/opensearch started.
func openOpenSearch(ctx context.Context, addresses, rig string, source sharedSource) (*indexSystem, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	list := strings.Split(addresses, ",")
	cluster, err := opensearch.Connect(opensearch.Config{Addresses: list, Transport: transport, Prefix: "assay-bench", Shards: 3})
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (engine.Index, error) { return cluster.Open(ctx, "bench", source) }
	x, err := cluster.Open(ctx, "bench", source)
	if err != nil {
		return nil, err
	}
	processes := func() (pids []int, err error) {
		for i := range list {
			data, err := os.ReadFile(filepath.Join(rig, fmt.Sprintf("n%d.pid", i+1)))
			if err != nil {
				return nil, err
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
		return pids, nil
	}
	return &indexSystem{
		Index: x, title: "OpenSearch × 3", source: source, open: open, settled: func(context.Context) error { return nil },
		bytes: func(ctx context.Context) (int64, error) { return storedIn(ctx, transport, list[0]) }, pids: processes,
		ends: []func() error{cluster.Close, func() error { transport.CloseIdleConnections(); return nil }},
	}, nil
}

// storedIn returns the bytes of the benchmark's indexes in a cluster, replicas included.
func storedIn(ctx context.Context, transport http.RoundTripper, address string) (int64, error) {
	where, err := url.JoinPath(address, "_cat/indices/assay-bench*")
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, where+"?h=store.size&bytes=b", nil)
	if err != nil {
		return 0, err
	}
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for field := range strings.FieldsSeq(string(data)) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("size of the index in OpenSearch: %w", err)
		}
		total += n
	}
	return total, nil
}

func (s *indexSystem) name() string                            { return s.title }
func (s *indexSystem) fill(ctx context.Context) error          { return s.Flush(ctx) }
func (s *indexSystem) settle(ctx context.Context) error        { return s.settled(ctx) }
func (s *indexSystem) size(ctx context.Context) (int64, error) { return s.bytes(ctx) }
func (s *indexSystem) processes() ([]int, error)               { return s.pids() }

func (s *indexSystem) close() error {
	err := s.Close()
	for _, end := range s.ends {
		err = errors.Join(err, end())
	}
	return err
}

func (s *indexSystem) text(ctx context.Context, group, q string) (answer, error) {
	r, err := s.Search(ctx, access(group), assay.Query{Text: q, Limit: top})
	return s.answer(chunkIDs(r)), err
}

func (s *indexSystem) nearest(ctx context.Context, group string, v []float32) (answer, error) {
	r, err := s.Nearest(ctx, access(group), assay.Query{Limit: top}, index.Vector{Model: s.source.model, Metric: index.Cosine, Values: v})
	return s.answer(chunkIDs(r)), err
}

// hybrid searches by text, then by vector, as the engine does, and fuses the ranks.
func (s *indexSystem) hybrid(ctx context.Context, group, q string, v []float32) (answer, error) {
	words, err := s.Search(ctx, access(group), assay.Query{Text: q, Limit: top})
	if err != nil {
		return nil, err
	}
	near, err := s.Nearest(ctx, access(group), assay.Query{Limit: top}, index.Vector{Model: s.source.model, Metric: index.Cosine, Values: v})
	if err != nil {
		return nil, err
	}
	return s.answer(fuse(chunkIDs(words), chunkIDs(near))), nil
}

// fuse orders IDs by the sum of 1/(60+rank) in two lists, best first, and returns the first ones, as
// many as top.
func fuse(a, b []string) []string {
	scores := make(map[string]float64)
	var ids []string
	for _, list := range [][]string{a, b} {
		for i, id := range list {
			if scores[id] == 0 {
				ids = append(ids, id)
			}
			scores[id] += 1 / float64(60+i+1)
		}
	}
	slices.SortStableFunc(ids, func(x, y string) int { return cmp.Compare(scores[y], scores[x]) })
	return ids[:min(top, len(ids))]
}

func chunkIDs(r index.Result) []string {
	ids := make([]string, len(r.Hits))
	for i, h := range r.Hits {
		ids[i] = h.Chunk
	}
	return ids
}

func (s *indexSystem) answer(ids []string) answer {
	return func() []int {
		if s.number == nil {
			s.number = s.source.numbers()
		}
		chunks := make([]int, len(ids))
		for i, id := range ids {
			chunks[i] = s.number[id]
		}
		return chunks
	}
}
