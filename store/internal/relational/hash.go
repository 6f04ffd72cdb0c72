package relational

import (
	"context"
	"encoding/hex"
	"math"

	"github.com/assay-rag/assay"
)

// passageHash returns assay.Passage.Hash in its stored form.
func passageHash(title string, c assay.Chunk, text string) []byte {
	key, err := hex.DecodeString(assay.Passage{Chunk: c, Title: title, Text: text}.Hash())
	if err != nil {
		panic("sqlite: a passage's hash is not hexadecimal: " + err.Error())
	}
	return key
}

// A chunkHash is the hash of a stored chunk.
type chunkHash struct {
	ordinal int
	hash    []byte
}

// versionHashes computes the hashes of a version's searched chunks.
func versionHashes(ctx context.Context, r Reader, version int64, title string) ([]chunkHash, error) {
	text, err := loadPieces(ctx, r, version, 0, math.MaxInt64, func(piece) error { return nil })
	if err != nil {
		return nil, err
	}
	var hashes []chunkHash
	err = r.Each(ctx, versionChunksQuery, []any{version}, func(scan func(...any) error) error {
		var c assay.Chunk
		if err := scanChunk(scan, &c); err != nil {
			return err
		}
		if c.Start < 0 || c.Start > c.End || c.End > len(text) {
			return damaged("chunk %s is not a span of its text", c.ID)
		}
		if c.Kind != assay.ChunkSection {
			hashes = append(hashes, chunkHash{c.Ordinal, passageHash(title, c, text[c.Start:c.End])})
		}
		return nil
	})
	return hashes, err
}

const setHash = `UPDATE chunks SET hash = ? WHERE version = ? AND ordinal = ?`

// rehash updates the passage hashes after a change of a version's title.
func (p *change) rehash(ctx context.Context, version int64, title string) error {
	hashes, err := versionHashes(ctx, p.t, version, title)
	if err != nil {
		return err
	}
	err = p.t.Each(ctx, `SELECT hash FROM chunks WHERE version = ? AND hash IS NOT NULL`, []any{version},
		func(scan func(...any) error) error {
			var hash []byte
			err := scan(&hash)
			p.retitled = append(p.retitled, hash)
			return err
		})
	if err != nil {
		return err
	}
	rows := make([][]any, len(hashes))
	for i, h := range hashes {
		rows[i] = []any{h.hash, version, h.ordinal}
	}
	_, err = p.t.ExecAll(ctx, setHash, rows)
	return err
}

// dropRetitled drops the vectors that no chunk refers to any more because titles changed. It must
// run last, because another document of the change may have the same passage.
func (p *change) dropRetitled(ctx context.Context) error {
	for _, hash := range p.retitled {
		_, err := p.t.Exec(ctx, `DELETE FROM vectors WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM chunks WHERE hash = ?1)`, hash)
		if err != nil {
			return err
		}
	}
	return nil
}
