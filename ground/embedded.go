package ground

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/learn"
)

// Edits is what was learned of how a word of a claim stands to the words of the evidence
// where the claim says what the evidence says, and where it was changed. Plain likeness
// of vectors does not tell that: those of opposites, of two numbers or of two names are
// much alike. `assay eval train-verifier` makes it.
type Edits struct {
	Context Space        `json:"context"` // of words as they stand in a sentence
	Alone   Space        `json:"alone"`   // of words by themselves
	Bags    []*learn.Bag `json:"bags"`    // their scores are averaged: unsupported, supported, contradicted
}

// A Space makes an encoder's vector shorter: what remains of it beside Mean along Rows.
type Space struct {
	Mean []float32   `json:"mean"`
	Rows [][]float32 `json:"rows"`
}

// The classes of the networks in Edits.
const (
	EditUnsupported = iota
	EditSupported
	EditContradicted
	editClasses
)

// EditWidth is how many numbers remain of a vector.
const EditWidth = 32

// EditShape returns the sizes of the networks in Edits.
func EditShape() *learn.Bag {
	return &learn.Bag{Pairs: 2, Width: EditWidth, Scalars: editScalars, Hidden: 24, Outputs: 8, Classes: editClasses}
}

// maxEditWords bounds the words of a claim that the networks see.
const maxEditWords = 120

// EditItems returns what the networks see of a claim beside what it cites: the items of a
// learn.Bag of EditShape, one for each word. There is none where the claim has no word or
// the evidence none.
func EditItems(ctx context.Context, encoder Encoder, e *Edits, claim string, cited []Passage) ([][]float32, error) {
	s, err := compare(ctx, encoder, e, claim, cited)
	if err != nil {
		return nil, err
	}
	return s.items, nil
}

// in shortens a vector.
func (p Space) in(v []float32, to []float32) {
	if len(v) != len(p.Mean) {
		return // of another encoder: it says nothing
	}
	centred := Beside(v, p.Mean)
	for i, row := range p.Rows {
		to[i] = float32(cosine(row, centred))
	}
}

// An aligned word is a claim's with the words of the sentences near its own that it is
// most like.
type aligned struct {
	match
	like, likeBest float64 // greatest cosine beside the mean: in near sentences, in the best one
	attended       []float32
	likest         *token
	against        bool // a word says the opposite
}

// sharpness is how much more a likelier word counts in what a word attends to: e to this
// times the difference of their cosines.
const sharpness = 16

// align finds what the networks see of each word of the claim.
func (s *comparison) align(ctx context.Context, encoder Encoder, e *Edits) error {
	var words []aligned
	for _, m := range s.words {
		if len(words) == maxEditWords {
			break
		}
		if a, ok := s.alignWord(m, e.Context.Mean); ok {
			words = append(words, a)
		}
	}
	alone, err := encodeWords(ctx, encoder, words)
	if err != nil {
		return err
	}
	s.items = make([][]float32, len(words))
	for i := range words {
		s.items[i] = s.item(e, &words[i], alone)
	}
	return nil
}

// Beside is a vector less the mean of such, of unit length.
func Beside(v, mean []float32) []float32 {
	out := make([]float32, len(v))
	for i := range v {
		out[i] = v[i] - mean[i]
	}
	unit(out)
	return out
}

// beside gives a piece's vectors beside the mean.
func (p *piece) beside(mean []float32) [][]float32 {
	if p.centred == nil && p.vectors != nil {
		p.centred = make([][]float32, len(p.vectors))
		for i, v := range p.vectors {
			p.centred[i] = Beside(v, mean)
		}
	}
	return p.centred
}

// alignWord finds what a word is most like.
func (s *comparison) alignWord(m match, mean []float32) (aligned, bool) {
	a := aligned{match: m, like: -1, likeBest: -1}
	c := s.claim[m.part]
	if c.vectors == nil || len(c.vectors[m.at]) != len(mean) {
		return a, false
	}
	v := c.beside(mean)[m.at]
	near := s.near[m.part]
	var likes []float64
	for k, p := range near {
		for j, u := range p.beside(mean) {
			x := cosine(v, u)
			likes = append(likes, x)
			if k == 0 {
				a.likeBest = max(a.likeBest, x)
			}
			if x > a.like {
				a.like, a.likest = x, &p.words[j]
			}
			a.against = a.against || opposed[m.stem][p.words[j].stem]
		}
	}
	if a.likest == nil {
		return a, false
	}
	a.attended = make([]float32, len(v))
	sum, i := 0.0, 0
	for _, p := range near {
		for _, u := range p.centred {
			const far = 0.25 // below the likest, where nothing counts any more
			if likes[i] >= a.like-far {
				w := math.Exp(sharpness * (likes[i] - a.like))
				sum += w
				for d := range u {
					a.attended[d] += float32(w) * u[d]
				}
			}
			i++
		}
	}
	for d := range a.attended {
		a.attended[d] /= float32(sum)
	}
	return a, true
}

// encodeWords gives words by themselves their vectors: those of the claim, and those that
// they are likest.
func encodeWords(ctx context.Context, encoder Encoder, words []aligned) (map[string][]float32, error) {
	alone := map[string][]float32{}
	var texts []string
	for _, a := range words {
		for _, w := range []string{a.lower, a.likest.lower} {
			if _, ok := alone[w]; !ok {
				alone[w] = nil
				texts = append(texts, w)
			}
		}
	}
	if len(texts) == 0 {
		return alone, nil
	}
	all, err := encoder.Encode(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("encode %d words: %w", len(texts), err)
	}
	if len(all) != len(texts) {
		return nil, fmt.Errorf("encode %d words: the encoder returned %d", len(texts), len(all))
	}
	for i, text := range texts {
		var sum []float32
		for _, t := range all[i] {
			if sum == nil {
				sum = make([]float32, len(t.Vector))
			}
			if len(t.Vector) != len(sum) {
				return nil, fmt.Errorf("encode a word: vectors of %d and %d numbers", len(sum), len(t.Vector))
			}
			for d, x := range t.Vector {
				sum[d] += x
			}
		}
		unit(sum)
		alone[text] = sum
	}
	return alone, nil
}

// editScalars is how many numbers an item has beside its vectors.
const editScalars = 20

// item is what the networks see of a word.
func (s *comparison) item(e *Edits, a *aligned, alone map[string][]float32) []float32 {
	const w = EditWidth
	item := make([]float32, 4*w+editScalars)
	c := s.claim[a.part]
	e.Context.in(c.vectors[a.at], item[:w])
	for i, row := range e.Context.Rows { // it is beside the mean already
		item[w+i] = float32(cosine(row, a.attended))
	}
	mine, theirs := alone[a.lower], alone[a.likest.lower]
	e.Alone.in(mine, item[2*w:3*w])
	e.Alone.in(theirs, item[3*w:4*w])
	likeness := 0.0
	if len(mine) == len(e.Alone.Mean) && len(theirs) == len(mine) {
		likeness = cosine(Beside(mine, e.Alone.Mean), Beside(theirs, e.Alone.Mean))
	}
	neighbour := func(d int) bool {
		i := a.at + d
		if i < 0 || i >= len(c.words) {
			return true
		}
		b := s.bestOf(a.part)
		return b != nil && b.stems[c.words[i].stem] > 0
	}
	for i, x := range []float64{
		a.like, a.likeBest, likeness, a.spelt,
		oneIf(a.near), oneIf(a.best), oneIf(a.all), oneIf(a.likest.stem == a.stem),
		oneIf(a.kind == number), oneIf(a.kind == name), oneIf(a.kind != small), oneIf(a.kind == number && !a.all),
		oneIf(a.kind == name && !a.all), oneIf(a.against), oneIf(marksOf(a.lower)&isNot != 0), oneIf(marksOf(a.lower)&isOnly != 0),
		oneIf(neighbour(-1)), oneIf(neighbour(1)), cosine(c.beside(e.Context.Mean)[a.at], a.attended), oneIf(denies(a.lower, a.likest.lower)),
	} {
		item[4*w+i] = float32(math.Round(x*1e4) / 1e4)
	}
	return item
}

// marksOf is what a small word marks.
func marksOf(lower string) marking { return phrases[lower] }

// scores are the log odds of Supported, and of Contradicted against unsupported.
func (e *Edits) scores(items [][]float32) (supported, contradicted float64) {
	if len(items) == 0 || len(e.Bags) == 0 {
		return 0, 0
	}
	for _, b := range e.Bags {
		o := b.LogOdds(items)
		u, s, c := float64(o[EditUnsupported]), float64(o[EditSupported]), float64(o[EditContradicted])
		most := max(u, c)
		supported += s - most - math.Log(math.Exp(u-most)+math.Exp(c-most))
		contradicted += c - u
	}
	n := float64(len(e.Bags))
	return supported / n, contradicted / n
}

// edits are what the networks say of the claim as a whole.
func (s *comparison) edits(f *features) {
	f.group = "edit"
	supported, contradicted := 0.0, 0.0
	if s.learned != nil {
		supported, contradicted = s.learned.scores(s.items)
	}
	const unit = 100 // rounded so that machines agree
	f.add("supported", math.Round(supported*unit)/unit)
	f.add("contradicted", math.Round(contradicted*unit)/unit)
}

// Encoded returns what was learned as it is stored: JSON under gzip.
func (e *Edits) Encoded() ([]byte, error) { return packed(e) }

// DecodeEdits reads what Encoded wrote. What does not fit this program is
// assay.ErrDamaged.
func DecodeEdits(data []byte) (*Edits, error) {
	e := &Edits{}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		err = json.NewDecoder(r).Decode(e)
	}
	if err != nil {
		return nil, fmt.Errorf("the weights of edits: %w: %w", err, assay.ErrDamaged)
	}
	for _, p := range []Space{e.Context, e.Alone} {
		if len(p.Rows) != EditWidth || slices.ContainsFunc(p.Rows, func(row []float32) bool { return len(row) != len(p.Mean) }) {
			return nil, fmt.Errorf("the weights of edits are of another size: %w", assay.ErrDamaged)
		}
	}
	shape := EditShape()
	for _, b := range e.Bags {
		if b == nil || b.ItemSize() != shape.ItemSize() || b.Classes != shape.Classes || !b.Fits() {
			return nil, fmt.Errorf("the weights of edits are of another size: %w", assay.ErrDamaged)
		}
	}
	return e, nil
}

//go:embed weights_edits.json.gz
var editFiles embed.FS

// shippedEdits are those in the binary; nil: there is none.
var shippedEdits = sync.OnceValues(func() (*Edits, error) {
	data, err := editFiles.ReadFile("weights_edits.json.gz")
	if err != nil {
		return nil, err
	}
	e, err := DecodeEdits(data)
	if err != nil || len(e.Bags) == 0 {
		return nil, err
	}
	return e, nil
})
