package retrieval

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// A vectorCache keeps the vectors of one model on disk, so that a set is encoded only once. The
// file has a header and records of equal size, each with a checksum. Records are only appended, and
// an incomplete or damaged one is ignored. Several processes may use the file concurrently.
//
//	header: "assay vectors 1\n", first 8 bytes of the SHA-256 of the model's name, uint32 dimensions, uint32 CRC-32C of these
//	record: 16 bytes of key, the values as float32, uint32 CRC-32C of both; all little-endian
type vectorCache struct {
	path       string
	model      string
	mu         sync.Mutex
	file       *os.File
	dimensions int // 0: the file has no header yet
	at         map[vectorKey]int64
}

// A vectorKey identifies a text and its purpose.
type vectorKey [16]byte

const (
	vectorMagic      = "assay vectors 1\n"
	vectorHeaderSize = len(vectorMagic) + 8 + 4 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func keyOf(p llm.Purpose, text string) vectorKey {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", p)
	io.WriteString(h, text)
	return vectorKey(h.Sum(nil))
}

// openVectorCache opens the model's file in dir and creates both if they do not exist. A file with
// other contents is an error that names it.
func openVectorCache(dir, model string) (*vectorCache, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("open the cache of vectors: %w", err)
	}
	c := &vectorCache{path: filepath.Join(dir, cacheName(model)), model: model, at: make(map[vectorKey]int64)}
	var err error
	if c.file, err = os.OpenFile(c.path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, fmt.Errorf("open the cache of vectors: %w", err)
	}
	if err := c.read(); err != nil {
		return nil, errors.Join(err, c.file.Close())
	}
	return c, nil
}

// cacheName returns a file name that begins with a readable form of the model's name and ends in a
// hash. The hash distinguishes names that map to the same readable form or differ only in case.
func cacheName(model string) string {
	readable := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-@", r) {
			return r
		}
		return '_'
	}, model)
	sum := sha256.Sum256([]byte(model))
	return fmt.Sprintf("%.80s-%x.vectors", readable, sum[:4])
}

// header returns the header of the file.
func (c *vectorCache) header(dimensions int) []byte {
	sum := sha256.Sum256([]byte(c.model))
	b := append([]byte(vectorMagic), sum[:8]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(dimensions))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// read reads the header and the positions of the records.
func (c *vectorCache) read() error {
	r := io.NewSectionReader(c.file, 0, math.MaxInt64)
	head := make([]byte, vectorHeaderSize)
	if _, err := io.ReadFull(r, head); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // empty, or the header is incomplete: put rewrites it
	} else if err != nil {
		return fmt.Errorf("read %s: %w", c.path, err)
	}
	dimensions := binary.LittleEndian.Uint32(head[len(head)-8:])
	if dimensions < 1 || dimensions > assay.MaxDimensions || !bytes.Equal(head, c.header(int(dimensions))) {
		return fmt.Errorf("%s is not a vector cache of %s; remove it: %w", c.path, c.model, assay.ErrDamaged)
	}
	c.dimensions = int(dimensions)
	record := make([]byte, c.recordSize())
	buffered := bufio.NewReaderSize(r, 1<<20)
	for at := int64(vectorHeaderSize); ; at += int64(len(record)) {
		if _, err := io.ReadFull(buffered, record); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s: %w", c.path, err)
		}
		if whole(record) {
			c.at[vectorKey(record)] = at
		}
	}
}

func (c *vectorCache) recordSize() int { return len(vectorKey{}) + 4*c.dimensions + 4 }

// whole reports whether the checksum of a record is correct.
func whole(record []byte) bool {
	n := len(record) - 4
	return crc32.Checksum(record[:n], castagnoli) == binary.LittleEndian.Uint32(record[n:])
}

// get returns the vector for a key, or nil if there is none.
func (c *vectorCache) get(key vectorKey) (llm.Vector, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.at[key]
	if !ok {
		return nil, nil
	}
	record := make([]byte, c.recordSize())
	if _, err := c.file.ReadAt(record, at); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.path, err)
	}
	if !whole(record) || vectorKey(record) != key {
		return nil, fmt.Errorf("%s changed while it was being read; remove it: %w", c.path, assay.ErrDamaged)
	}
	v := make(llm.Vector, c.dimensions)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(record[len(key)+4*i:]))
	}
	return v, nil
}

// put appends vectors. keys[i] is the key of vectors[i].
func (c *vectorCache) put(keys []vectorKey, vectors []llm.Vector) (err error) {
	if len(keys) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	lock := flock.New(c.path + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock %s: %w", c.path, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	end, err := c.end(len(vectors[0]))
	if err != nil {
		return fmt.Errorf("write %s: %w", c.path, err)
	}
	size := c.recordSize()
	records := make([]byte, 0, size*len(keys))
	for i, key := range keys {
		if len(vectors[i]) != c.dimensions {
			return fmt.Errorf("%s made a vector of %d dimensions; those in %s have %d", c.model, len(vectors[i]), c.path, c.dimensions)
		}
		first := len(records)
		records = append(records, key[:]...)
		for _, x := range vectors[i] {
			records = binary.LittleEndian.AppendUint32(records, math.Float32bits(x))
		}
		records = binary.LittleEndian.AppendUint32(records, crc32.Checksum(records[first:], castagnoli))
	}
	if _, err := c.file.WriteAt(records, end); err != nil {
		return fmt.Errorf("write %s: %w", c.path, err)
	}
	for i, key := range keys {
		c.at[key] = end + int64(i*size)
	}
	return nil
}

// end returns the position of the next record, which overwrites an incomplete one. It writes the
// header if the file has none. The caller must hold the file lock.
func (c *vectorCache) end(dimensions int) (int64, error) {
	info, err := c.file.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() < int64(vectorHeaderSize) {
		c.dimensions = dimensions
		_, err := c.file.WriteAt(c.header(dimensions), 0)
		return int64(vectorHeaderSize), err
	}
	if c.dimensions == 0 { // another process has written the header since
		if err := c.read(); err != nil {
			return 0, err
		}
	}
	return info.Size() - (info.Size()-int64(vectorHeaderSize))%int64(c.recordSize()), nil
}

func (c *vectorCache) close() error { return c.file.Close() }

// cached returns an embedder that calls e only for texts that are not in the cache. It implements
// the same optional interfaces as e.
func cached(e llm.Embedder, cache *vectorCache) llm.Embedder {
	c := &cachedEmbedder{Embedder: e, cache: cache}
	counter, counts := e.(llm.TokenCounter)
	tokens, embedsTokens := e.(llm.TokenEmbedder)
	linguist, knows := e.(llm.Linguist)
	switch {
	case counts && embedsTokens && knows:
		return struct {
			*cachedEmbedder
			llm.TokenCounter
			llm.TokenEmbedder
			llm.Linguist
		}{c, counter, tokens, linguist}
	case counts && embedsTokens:
		return struct {
			*cachedEmbedder
			llm.TokenCounter
			llm.TokenEmbedder
		}{c, counter, tokens}
	case counts && knows:
		return struct {
			*cachedEmbedder
			llm.TokenCounter
			llm.Linguist
		}{c, counter, linguist}
	case embedsTokens && knows:
		return struct {
			*cachedEmbedder
			llm.TokenEmbedder
			llm.Linguist
		}{c, tokens, linguist}
	case counts:
		return struct {
			*cachedEmbedder
			llm.TokenCounter
		}{c, counter}
	case embedsTokens:
		return struct {
			*cachedEmbedder
			llm.TokenEmbedder
		}{c, tokens}
	case knows:
		return struct {
			*cachedEmbedder
			llm.Linguist
		}{c, linguist}
	}
	return c
}

type cachedEmbedder struct {
	llm.Embedder
	cache *vectorCache
}

// Embed implements llm.Embedder. Vectors that were made before an error are cached.
func (c *cachedEmbedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	vectors := make([]llm.Vector, len(texts))
	var missing []string
	var keys []vectorKey
	at := map[vectorKey][]int{} // indexes in texts of the missing ones
	for i, text := range texts {
		key := keyOf(p, text)
		var err error
		if vectors[i], err = c.cache.get(key); err != nil {
			return nil, err
		}
		if vectors[i] != nil {
			continue
		}
		if at[key] == nil {
			missing, keys = append(missing, text), append(keys, key)
		}
		at[key] = append(at[key], i)
	}
	if len(missing) == 0 {
		return vectors, nil
	}
	made, err := c.Embedder.Embed(ctx, p, missing)
	if len(made) > len(missing) || err == nil && len(made) < len(missing) {
		return nil, fmt.Errorf("%s returned %d vectors for %d texts", c.Model(), len(made), len(missing))
	}
	if err := c.cache.put(keys[:len(made)], made); err != nil {
		return nil, err
	}
	for i, v := range made {
		for _, j := range at[keys[i]] {
			vectors[j] = v
		}
	}
	if err != nil {
		return prefix(vectors), err
	}
	return vectors, nil
}

// prefix returns the vectors before the first missing one.
func prefix(vectors []llm.Vector) []llm.Vector {
	for i, v := range vectors {
		if v == nil {
			return vectors[:i]
		}
	}
	return vectors
}
