package pgvector

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
)

// What the table count counts. name is empty unless it is mentioned.
const (
	countDocuments = "documents"
	countChunks    = "chunks"
	countLength    = "length"   // sum of the weighted lengths of the chunks
	countLanguage  = "language" // documents with chunks, by the language in name
	countVectors   = "vectors"  // of the model whose number is name
	countKind      = "kind:"    // with a kind: documents with a value of this kind for the metadata key in name
)

// A counts collects differences to the tables count and term.
type counts struct {
	sums    map[countKey]int64
	holding map[termKey]int32
}

type countKey struct {
	what, name string
	class      int32
}

type termKey struct {
	term  int64
	class int32
}

func newCounts() *counts {
	return &counts{sums: make(map[countKey]int64), holding: make(map[termKey]int32)}
}

// size returns the number of distinct differences.
func (c *counts) size() int { return len(c.sums) + len(c.holding) }

func (c *counts) add(what, name string, class int32, n int64) {
	c.sums[countKey{what, name, class}] += n
}

// terms counts the terms of one chunk.
func (c *counts) terms(class int32, terms []int64, n int32) {
	for _, t := range terms {
		c.holding[termKey{t, class}] += n
	}
}

// documentCounts is what a document adds to the counts of its class.
type documentCounts struct {
	language string // encoded
	metadata map[string]json.RawMessage
	chunks   int
	length   int64
}

// document counts a document n times, which is 1 or -1.
func (c *counts) document(class int32, d documentCounts, n int64) error {
	c.add(countDocuments, "", class, n)
	c.add(countChunks, "", class, n*int64(d.chunks))
	c.add(countLength, "", class, n*d.length)
	if d.chunks > 0 {
		c.add(countLanguage, d.language, class, n)
	}
	for key, value := range d.metadata {
		kind, err := kindOf(value)
		if err != nil {
			return fmt.Errorf("metadata key %q: %w", decode(key), err)
		}
		c.add(countKind+string(kind), keyName(key), class, n)
	}
	return nil
}

// kindOf returns the kind of a value as stored in document.metadata.
func kindOf(value json.RawMessage) (assay.ValueKind, error) {
	if len(value) > 0 {
		switch value[0] {
		case '"':
			return assay.KindString, nil
		case 't', 'f':
			return assay.KindBoolean, nil
		case 'n':
			return assay.KindTime, nil
		case '[':
			return assay.KindList, nil
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			return assay.KindNumber, nil
		}
	}
	return "", fmt.Errorf("a value that no metadata has: %w", assay.ErrDamaged)
}

// keyName returns the name that counts a metadata key, which is encoded. A long key is replaced by
// its hash, because the rows of an index are limited.
func keyName(key string) string {
	const most = 200 // bytes
	if len(key) <= most {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "#" + hex.EncodeToString(sum[:])
}

func modelName(no int32) string { return strconv.Itoa(int(no)) }

// merge adds differences to a table and deletes the rows that become zero, so that nothing of a
// deleted document remains.
const (
	mergeCounts = `MERGE INTO count t USING unnest($1::text[], $2::text[], $3::int[], $4::bigint[]) AS d(what, name, class, n)
		ON t.what = d.what AND t.name = d.name AND t.class = d.class
		WHEN MATCHED AND t.n + d.n = 0 THEN DELETE
		WHEN MATCHED THEN UPDATE SET n = t.n + d.n
		WHEN NOT MATCHED THEN INSERT (what, name, class, n) VALUES (d.what, d.name, d.class, d.n)`
	mergeTerms = `MERGE INTO term t USING unnest($1::bigint[], $2::int[], $3::int[]) AS d(term, class, n)
		ON t.term = d.term AND t.class = d.class
		WHEN MATCHED AND t.n + d.n = 0 THEN DELETE
		WHEN MATCHED THEN UPDATE SET n = t.n + d.n
		WHEN NOT MATCHED THEN INSERT (term, class, n) VALUES (d.term, d.class, d.n)`
)

// write adds the differences to the tables and forgets them.
func (c *counts) write(ctx context.Context, tx pgx.Tx) error {
	var what, name []string
	var class []int32
	var n []int64
	for k, difference := range c.sums {
		if difference != 0 {
			what, name, class, n = append(what, k.what), append(name, k.name), append(class, k.class), append(n, difference)
		}
	}
	if len(n) > 0 {
		if _, err := tx.Exec(ctx, mergeCounts, what, name, class, n); err != nil {
			return err
		}
	}
	var terms []int64
	var classes, holding []int32
	for k, difference := range c.holding {
		if difference != 0 {
			terms, classes, holding = append(terms, k.term), append(classes, k.class), append(holding, difference)
		}
	}
	if len(terms) > 0 {
		if _, err := tx.Exec(ctx, mergeTerms, terms, classes, holding); err != nil {
			return err
		}
	}
	clear(c.sums)
	clear(c.holding)
	return nil
}
