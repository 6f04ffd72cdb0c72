package index

import (
	"encoding/binary"

	"github.com/assay-rag/assay/internal/entity"
)

// An entityBuilder collects the entities that the chunks of a segment name.
type entityBuilder struct {
	finder  entity.Finder
	numbers map[string]uint32 // entity numbers by key
	keys    []string          // keys by number
	counts  []uint32          // number of rows that name each entity

	// log has, for each row, the number of its entities and for each entity a varint of twice its
	// number, plus one if the entity is a title.
	log      []byte
	mentions int

	list []posting // buffer, reused for the next segment
}

// add adds the entities of the next row and returns the approximate number of bytes they take.
func (b *entityBuilder) add(list []entity.Entity) int {
	before := len(b.log)
	size := 0
	b.log = binary.AppendUvarint(b.log, uint64(len(list)))
	for _, e := range list {
		n, ok := b.numbers[e.Key]
		if !ok {
			n = uint32(len(b.keys))
			b.numbers[e.Key] = n
			b.keys = append(b.keys, e.Key)
			b.counts = append(b.counts, 0)
			size += len(e.Key) + 64
		}
		b.counts[n]++
		head := uint64(n) << 1
		if e.Title {
			head++
		}
		b.log = binary.AppendUvarint(b.log, head)
	}
	b.mentions += len(list)
	return size + len(b.log) - before
}

// write writes the sections of entities, which end the segment.
func (b *entityBuilder) write(w *segmentWriter) error {
	w.endTerms()
	ends := b.sortPostings()
	ordinals := make([]uint32, len(b.keys)) // position in the dictionary, by number
	for i, n := range byText(b.keys) {
		ordinals[n] = uint32(i)
		if err := w.entity(b.keys[n], b.list[ends[n]-b.counts[n]:ends[n]]); err != nil {
			return err
		}
	}
	w.endEntities()
	var row []mention
	for log := (decoder{rest: b.log}); len(log.rest) > 0; {
		row = row[:0]
		for range log.uint() {
			head := log.uint()
			row = append(row, mention{ordinals[head>>1], head&1 != 0})
		}
		w.mentions.add(row)
	}
	return w.finish()
}

// sortPostings copies the log into b.list, grouped by entity, and returns the end of each entity's
// postings.
func (b *entityBuilder) sortPostings() []uint32 {
	next := make([]uint32, len(b.counts)) // position of each entity's next posting
	sum := uint32(0)
	for n, count := range b.counts {
		next[n] = sum
		sum += count
	}
	if cap(b.list) < b.mentions {
		b.list = make([]posting, b.mentions)
	}
	b.list = b.list[:b.mentions]
	row := uint32(0)
	for log := (decoder{rest: b.log}); len(log.rest) > 0; row++ {
		for range log.uint() {
			head := log.uint()
			tf := uint32(named)
			if head&1 != 0 {
				tf = titled
			}
			b.list[next[head>>1]] = posting{row, tf}
			next[head>>1]++
		}
	}
	return next
}

func (b *entityBuilder) reset() {
	clear(b.numbers)
	clear(b.keys)
	b.keys, b.counts, b.log, b.mentions = b.keys[:0], b.counts[:0], b.log[:0], 0
}
