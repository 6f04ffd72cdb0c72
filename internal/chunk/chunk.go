// Package chunk splits a parsed document into chunks, the spans that are indexed, found and cited.
// The default chunker follows the document's structure and ignores its words; others are chosen by
// name. The package neither parses nor stores.
package chunk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
)

// Version identifies the behaviour of Split. It changes whenever the same document would give
// different chunks.
const Version = "chunk-2"

// Options configure the chunks. Zero means the default.
type Options struct {
	// Chunker is the name of one of Chunkers; default Structure.
	Chunker string

	// TargetTokens is the largest size of a chunk, as counted by Tokens, if its parts allow it;
	// default 200. With Structure a section of up to one and a half times the target stays one
	// chunk, and a code block, a table row or a sentence is cut only if it is larger than twice the
	// target. No chunk is larger than that, except a single run without a blank.
	TargetTokens int

	// OverlapTokens is the largest number of tokens that a chunk repeats of the one before;
	// default 40. Negative: none. Structure repeats sentences, within a section. The chunkers fixed,
	// semantic and hierarchical repeat nothing.
	OverlapTokens int

	// Embed returns the vectors of texts, for the semantic chunker. Model is its name.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
	Model string
}

// Bounds of the sizes that users may choose.
const (
	MinTarget = 16
	MaxTarget = 2000
)

// Check returns an assay.ErrInvalid if the options are outside their range.
func (o Options) Check() error {
	if _, err := chunker(o.Chunker); err != nil {
		return err
	}
	switch target := cmp.Or(o.TargetTokens, defaultTarget); {
	case target < MinTarget || target > MaxTarget:
		return fmt.Errorf("chunk size %d is not between %d and %d tokens: %w", target, MinTarget, MaxTarget, assay.ErrInvalid)
	case o.OverlapTokens > target/2:
		return fmt.Errorf("chunk overlap %d is more than half of the size %d: %w", o.OverlapTokens, target, assay.ErrInvalid)
	}
	return nil
}

// String identifies the chunks that the options give, for the version of documents.
func (o Options) String() string {
	name := cmp.Or(o.Chunker, Structure)
	text := fmt.Sprintf("%s %s %d/%d", Version, name, cmp.Or(o.TargetTokens, defaultTarget), max(cmp.Or(o.OverlapTokens, defaultOverlap), 0))
	if name == Semantic {
		text += " " + o.Model
	}
	return text
}

const (
	defaultTarget  = 200
	defaultOverlap = 40
)

// sectionTargets is the largest size of a section chunk, in targets. A hit is widened to its
// section chunk, and several of these must fit into a prompt.
const sectionTargets = 6

// Split divides doc, which is the given version of the given document, into chunks by ordinal.
// Equal input gives equal chunks. The error is ctx's, the encoder's, or assay.ErrInvalid for an
// unknown chunker.
//
// The leaves are chunks of kind prose, code or table. Together they hold all of doc's text, and
// each ends after the one before. Section chunks precede and contain their leaves, which have them
// as parents.
//
// With Structure the leaves do not hold headings, which are in Chunk.Headings. A heading without
// text under it is a leaf itself. A leaf lies within one section, the text between two headings.
// Leaves overlap only by whole sentences of a section. If a section has several leaves, it also has
// section chunks. The headings of a leaf that starts in the middle of a table end with the column
// names.
//
// A chunk has text of one provenance: the source's own, recognised text, or the descriptions of one
// model. The last heading of a description is DescribedBy.
func Split(ctx context.Context, doc parse.Document, document, version string, opts Options) ([]assay.Chunk, error) {
	by, err := chunker(opts.Chunker)
	if err != nil {
		return nil, err
	}
	target := max(cmp.Or(opts.TargetTokens, defaultTarget), 1)
	s := &splitter{
		doc:   doc,
		embed: opts.Embed,
		packer: packer{
			text:    doc.Text,
			target:  target,
			hard:    2 * target,
			overlap: max(cmp.Or(opts.OverlapTokens, defaultOverlap), 0),
		},
	}
	if err := by.split(s, ctx); err != nil {
		return nil, err
	}
	for i := range s.chunks {
		c := &s.chunks[i]
		c.Document, c.Version, c.Ordinal = document, version, i
		c.ID = assay.ChunkID(document, version, i)
		if p := s.parents[i]; p >= 0 {
			c.Parent = s.chunks[p].ID
		}
	}
	return s.chunks, ctx.Err()
}

// A splitter processes a document's sections.
type splitter struct {
	doc     parse.Document
	embed   func(context.Context, []string) ([][]float32, error)
	packer  packer
	heads   []int         // see tableHeads; nil: not computed
	path    []parse.Block // headings around the current section
	chunks  []assay.Chunk
	parents []int // for each chunk the index of its parent, or -1
}

// eachSection calls fn with the blocks of each section, after its headings have entered the path. A
// section that is only a heading has that heading as its block. Where the provenance changes, a
// section is divided as if another one began.
func (s *splitter) eachSection(ctx context.Context, fn func(blocks []parse.Block)) error {
	blocks := s.doc.Blocks
	for i := 0; i < len(blocks) && ctx.Err() == nil; {
		if blocks[i].Kind == parse.Heading {
			s.enter(blocks[i])
			if next := i + 1; next == len(blocks) || blocks[next].Kind == parse.Heading && blocks[next].Level <= blocks[i].Level {
				fn(blocks[i : i+1])
			}
			i++
			continue
		}
		origin := s.doc.ProvenanceOf(blocks[i].Start, blocks[i].End)
		end := i + 1
		for end < len(blocks) && blocks[end].Kind != parse.Heading && sameOrigin(origin, s.doc.ProvenanceOf(blocks[end].Start, blocks[end].End)) {
			end++
		}
		fn(blocks[i:end])
		i = end
	}
	return ctx.Err()
}

// sameOrigin reports whether text of two origins may be in one chunk.
func sameOrigin(a, b assay.Provenance) bool { return a.Kind == b.Kind && a.Model == b.Model }

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

// sections adds the chunks of every section.
func (s *splitter) sections(ctx context.Context) error {
	return s.eachSection(ctx, func(blocks []parse.Block) {
		leaves := s.packer.pack(s.units(blocks))
		headings := s.headings()
		limit := sectionTargets * s.packer.target
		for len(leaves) > 0 {
			n, tokens := 1, leaves[0].tokens
			for n < len(leaves) && tokens+leaves[n].tokens <= limit {
				tokens += leaves[n].tokens
				n++
			}
			s.family(leaves[:n], headings)
			leaves = leaves[n:]
		}
	})
}

// family adds leaves and, if there are several, a section chunk as their parent.
func (s *splitter) family(leaves []span, headings []string) {
	parent := -1
	if len(leaves) > 1 {
		parent = len(s.chunks)
		s.add(span{start: leaves[0].start, end: leaves[len(leaves)-1].end, kind: assay.ChunkSection}, headings, -1)
	}
	for _, l := range leaves {
		if head := s.columnNames(l); head != "" {
			s.add(l, append(slices.Clone(headings), head), parent)
		} else {
			s.add(l, headings, parent)
		}
	}
}

// columnNames returns the column names of the table whose rows l starts with, if they precede l.
func (s *splitter) columnNames(l span) string {
	if l.kind != assay.ChunkTable {
		return ""
	}
	if s.heads == nil {
		s.heads = tableHeads(s.doc.Blocks)
	}
	at, found := slices.BinarySearchFunc(s.doc.Blocks, l.start, func(b parse.Block, start int) int { return b.Start - start })
	if !found || s.heads[at] < 0 {
		return ""
	}
	head := s.doc.Blocks[s.heads[at]]
	label := strings.Join(strings.Fields(s.doc.Text[head.Start:head.End]), " ")
	if len(label) > longestColumnNames {
		return ""
	}
	return label
}

// longestColumnNames is the most bytes of column names that every chunk of a table repeats.
const longestColumnNames = 300

// tableHeads returns for each block that is a row of a table the index of the table's head, else -1.
func tableHeads(blocks []parse.Block) []int {
	heads := make([]int, len(blocks))
	head := -1
	for i, b := range blocks {
		heads[i] = -1
		switch b.Kind {
		case parse.TableHead:
			head = i
		case parse.TableRow:
			heads[i] = head
		default:
			head = -1
		}
	}
	return heads
}

func (s *splitter) add(l span, headings []string, parent int) {
	origin := s.doc.ProvenanceOf(l.start, l.end)
	if origin.Kind == assay.ProvenanceDescribed {
		headings = append(slices.Clone(headings), DescribedBy(origin.Model))
	}
	s.chunks = append(s.chunks, assay.Chunk{
		Kind:     l.kind,
		Start:    l.start,
		End:      l.end,
		Headings: headings,
		Tokens:   Tokens(s.doc.Text[l.start:l.end]),

		Provenance: origin.Kind,
		Confidence: origin.Confidence,
		Model:      origin.Model,
	})
	s.parents = append(s.parents, parent)
}

// DescribedBy returns the heading above the descriptions of images by a model.
func DescribedBy(model string) string {
	return "Description of an image by " + cmp.Or(model, "a model")
}
