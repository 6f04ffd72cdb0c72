// Package chunk splits a parsed document into chunks, the spans that are indexed, found and cited.
// It follows the document's structure and ignores its words. It neither parses nor stores.
package chunk

import (
	"cmp"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
)

// Version identifies the behaviour of Split. It changes whenever the same document would give
// different chunks.
const Version = "chunk-1"

// Options configure the size of chunks, as counted by Tokens. Zero means the default.
type Options struct {
	// TargetTokens is the largest size of a chunk if its parts allow it; default 200. A section of
	// up to one and a half times the target stays one chunk. A code block, a table row or a
	// sentence is cut only if it is larger than twice the target. No chunk is larger than that,
	// except a single run without a blank.
	TargetTokens int

	// OverlapTokens is the largest number of tokens of the preceding sentences that a chunk
	// repeats, within its section; default 40. Negative: none.
	OverlapTokens int
}

// sectionTargets is the largest size of a section chunk, in targets. A hit is widened to its
// section chunk, and several of these must fit into a prompt.
const sectionTargets = 6

// Split divides doc, which is the given version of the given document, into chunks by ordinal.
// Equal input gives equal chunks.
//
// The leaves are chunks of kind prose, code or table. Together they hold all of doc's text except
// its headings, which are in Chunk.Headings. A heading without text under it is a leaf itself. A
// leaf lies within one section, the text between two headings. Leaves of a section follow one
// another, and overlap only by whole sentences. If a section has several leaves, it also has
// section chunks, which precede and contain them as their parents.
func Split(doc parse.Document, document, version string, opts Options) []assay.Chunk {
	target := max(cmp.Or(opts.TargetTokens, 200), 1)
	s := &splitter{
		doc: doc,
		packer: packer{
			text:    doc.Text,
			target:  target,
			hard:    2 * target,
			overlap: max(cmp.Or(opts.OverlapTokens, 40), 0),
		},
	}
	s.sections()
	for i := range s.chunks {
		c := &s.chunks[i]
		c.Document, c.Version, c.Ordinal = document, version, i
		c.ID = assay.ChunkID(document, version, i)
		if p := s.parents[i]; p >= 0 {
			c.Parent = s.chunks[p].ID
		}
	}
	return s.chunks
}

// A splitter processes a document's sections.
type splitter struct {
	doc     parse.Document
	packer  packer
	path    []parse.Block // headings around the current section
	chunks  []assay.Chunk
	parents []int // for each chunk the index of its parent, or -1
}

func (s *splitter) sections() {
	blocks := s.doc.Blocks
	for i := 0; i < len(blocks); {
		if blocks[i].Kind == parse.Heading {
			s.enter(blocks[i])
			if next := i + 1; next == len(blocks) || blocks[next].Kind == parse.Heading && blocks[next].Level <= blocks[i].Level {
				s.section(blocks[i : i+1])
			}
			i++
			continue
		}
		end := i
		for end < len(blocks) && blocks[end].Kind != parse.Heading {
			end++
		}
		s.section(blocks[i:end])
		i = end
	}
}

// enter adds a heading to the path, in place of those of its level and below.
func (s *splitter) enter(h parse.Block) {
	for len(s.path) > 0 && s.path[len(s.path)-1].Level >= h.Level {
		s.path = s.path[:len(s.path)-1]
	}
	s.path = append(s.path, h)
}

// headings returns the labels of the path without the document's title.
func (s *splitter) headings() []string {
	labels := make([]string, 0, len(s.path))
	for i, h := range s.path {
		if i == 0 && strings.EqualFold(h.Label, s.doc.Title) {
			continue
		}
		labels = append(labels, h.Label)
	}
	return labels
}

// section splits one section's blocks and adds its chunks.
func (s *splitter) section(blocks []parse.Block) {
	leaves := s.packer.pack(s.units(blocks))
	headings := s.headings()
	limit := sectionTargets * s.packer.target
	for i := 0; i < len(leaves); {
		tokens, end := 0, i
		for end < len(leaves) && (end == i || tokens+leaves[end].tokens <= limit) {
			tokens += leaves[end].tokens
			end++
		}
		parent := -1
		if end-i > 1 {
			parent = len(s.chunks)
			s.add(span{start: leaves[i].start, end: leaves[end-1].end, kind: assay.ChunkSection}, headings, -1)
		}
		for ; i < end; i++ {
			s.add(leaves[i], headings, parent)
		}
	}
}

func (s *splitter) add(l span, headings []string, parent int) {
	s.chunks = append(s.chunks, assay.Chunk{
		Kind:     l.kind,
		Start:    l.start,
		End:      l.end,
		Headings: headings,
		Tokens:   Tokens(s.doc.Text[l.start:l.end]),
	})
	s.parents = append(s.parents, parent)
}
