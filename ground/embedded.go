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
	"github.com/assay-rag/assay/internal/surface"
)

// Edits is what was learned of how a word of a claim stands to the words of the evidence
// where the claim says what the evidence says, and where it was changed, of how the words
// of the evidence stand to the claim's, and of how the sentences do. Plain likeness of
// vectors does not tell that: those of opposites, of two numbers or of two names are much
// alike. `assay eval train-verifier` makes it.
type Edits struct {
	Context Space        `json:"context"` // of words as they stand in a sentence
	Alone   Space        `json:"alone"`   // of words by themselves
	Whole   Space        `json:"whole"`   // of sentences
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

// EditWidth is how many numbers remain of a word's vector, WholeWidth of a sentence's.
const (
	EditWidth  = 32
	WholeWidth = 48
)

// EditShape returns the sizes of the networks in Edits: a tower for the claim's words, one
// for those of the evidence, one for sentences.
func EditShape() *learn.Bag {
	words := learn.Tower{Pairs: 2, Width: EditWidth, Scalars: wordScalars, Hidden: 24, Outputs: 8}
	return &learn.Bag{
		Towers: []learn.Tower{words, words, {Pairs: 1, Width: WholeWidth, Scalars: wholeScalars, Hidden: 16, Outputs: 8}},
		Upper:  12, Classes: editClasses,
	}
}

// maxEditWords bounds the words of a claim that the networks see, and those of the evidence.
const maxEditWords = 120

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

// An aligned word is one with the words of the other side that it is most like.
type aligned struct {
	*token
	in             *piece // that it stands in
	at             int    // there
	against        []*piece
	near, best     bool    // its stem is on the other side: anywhere, in the first piece
	all            bool    // it is anywhere in the evidence, or in the claim
	spelt          float64 // likeness of the likest word by its letters
	like, likeBest float64 // greatest cosine beside the mean: anywhere, in the first piece
	attended       []float32
	likest         *token
	home           *piece // that the likest stands in
	place          int    // of the likest in it
	opposite       bool   // a word there says the opposite
}

// sharpness is how much more a likelier word counts in what a word attends to: e to this
// times the difference of their cosines.
const sharpness = 16

// align finds what the networks see of the claim.
func (s *comparison) align(ctx context.Context, encoder Encoder, e *Edits) error {
	var forth, back []aligned
	for _, m := range s.words {
		if len(forth) < maxEditWords && m.says() {
			a := aligned{token: m.token, in: s.claim[m.part], at: m.at, against: s.near[m.part], near: m.near, best: m.best, all: m.all, spelt: m.spelt}
			if a.look(e.Context.Mean) {
				forth = append(forth, a)
			}
		}
	}
	for i, c := range s.claim {
		if p := s.bestOf(i); p != nil {
			back = append(back, s.backward(p, c, maxEditWords-len(back), e.Context.Mean)...)
		}
	}
	alone, err := encodeWords(ctx, encoder, forth, back)
	if err != nil {
		return err
	}
	s.items = [][][]float32{itemsOf(e, forth, alone), itemsOf(e, back, alone), s.wholeItems(e)}
	return nil
}

// says reports whether a word has content or marks something.
func (t *token) says() bool { return t.kind != small || phrases[t.lower] != 0 }

// backward aligns the words of a sentence of the evidence with the claim's, its own part
// first.
func (s *comparison) backward(p, c *piece, most int, mean []float32) []aligned {
	against := []*piece{c}
	for _, o := range s.claim {
		if o != c {
			against = append(against, o)
		}
	}
	var out []aligned
	for i := range p.words {
		if len(out) >= most {
			break
		}
		if !p.words[i].says() {
			continue
		}
		a := aligned{token: &p.words[i], in: p, at: i, against: against}
		for k, o := range against {
			held := o.stems[a.stem] > 0
			a.near, a.best = a.near || held, a.best || held && k == 0
			for j := range o.words {
				if !held {
					a.spelt = max(a.spelt, spelling(a.lower, o.words[j].lower))
				}
			}
		}
		if a.all = a.near; a.near {
			a.spelt = 1
		}
		if a.look(mean) {
			out = append(out, a)
		}
	}
	return out
}

func itemsOf(e *Edits, words []aligned, alone map[string][]float32) [][]float32 {
	items := make([][]float32, len(words))
	for i := range words {
		items[i] = words[i].item(e, alone)
		if i > 0 {
			words[i].order(&words[i-1], items[i])
		}
	}
	return items
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

// look finds what the word is most like; false where there is nothing or no vector.
func (a *aligned) look(mean []float32) bool {
	a.like, a.likeBest = -1, -1
	if a.in.vectors == nil || len(a.in.vectors[a.at]) != len(mean) {
		return false
	}
	v := a.in.beside(mean)[a.at]
	var likes []float64
	for k, p := range a.against {
		for j, u := range p.beside(mean) {
			x := cosine(v, u)
			likes = append(likes, x)
			if k == 0 {
				a.likeBest = max(a.likeBest, x)
			}
			if x > a.like {
				a.like, a.likest, a.home, a.place = x, &p.words[j], p, j
			}
			a.opposite = a.opposite || opposed[a.stem][p.words[j].stem]
		}
	}
	if a.likest == nil {
		return false
	}
	a.attended = make([]float32, len(v))
	sum, i := 0.0, 0
	for _, p := range a.against {
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
	return true
}

// encodeWords gives words by themselves their vectors, and those that they are likest.
func encodeWords(ctx context.Context, encoder Encoder, forth, back []aligned) (map[string][]float32, error) {
	alone := map[string][]float32{}
	var texts []string
	for _, a := range slices.Concat(forth, back) {
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

// wordScalars is how many numbers a word's item has beside its vectors.
const wordScalars = 21 + 11 + 2

// item is what the networks see of a word.
func (a *aligned) item(e *Edits, alone map[string][]float32) []float32 {
	const w = EditWidth
	item := make([]float32, 4*w+wordScalars)
	e.Context.in(a.in.vectors[a.at], item[:w])
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
		return i < 0 || i >= len(a.in.words) || a.against[0].stems[a.in.words[i].stem] > 0
	}
	marks := phrases[a.lower]
	scalars := []float64{
		a.like, a.likeBest, likeness, a.spelt,
		oneIf(a.near), oneIf(a.best), oneIf(a.all), oneIf(a.likest.stem == a.stem),
		oneIf(a.kind == number), oneIf(a.kind == name), oneIf(a.kind != small), oneIf(a.kind == number && !a.all),
		oneIf(a.kind == name && !a.all), oneIf(a.opposite), oneIf(marks&isNot != 0), oneIf(marks&isOnly != 0),
		oneIf(neighbour(-1)), oneIf(neighbour(1)), cosine(a.in.beside(e.Context.Mean)[a.at], a.attended), oneIf(denies(a.lower, a.likest.lower)),
		oneIf(turning[a.stem]),
	}
	for _, class := range classes {
		scalars = append(scalars, oneIf(marks&class.marks != 0))
	}
	for i, x := range scalars {
		item[4*w+i] = rounded(x)
	}
	return item
}

func rounded(x float64) float32 { return float32(math.Round(x*1e4) / 1e4) }

// order adds where a word's likest stands beside that of the word before: in the same
// sentence, behind it or before it; near it or not.
func (a *aligned) order(before *aligned, item []float32) {
	if a.in != before.in || a.home != before.home {
		return
	}
	const close = 4
	at := len(item) - 2
	d := a.place - before.place
	item[at] = 1
	if d < 0 {
		item[at] = -1
	}
	item[at+1] = rounded(oneIf(d > close || d < -close))
}

// wholeScalars is how many numbers a sentence's item has beside its vectors.
const wholeScalars = 14

// wholeItems are what the networks see of sentences: each of the claim beside those
// nearest to it.
func (s *comparison) wholeItems(e *Edits) [][]float32 {
	const most, w = 3, WholeWidth
	var items [][]float32
	for i, c := range s.claim {
		for k, p := range s.near[i][:min(most, len(s.near[i]))] {
			if c.mean == nil || p.mean == nil {
				continue
			}
			item := make([]float32, 2*w+wholeScalars)
			e.Whole.in(c.mean, item[:w])
			e.Whole.in(p.mean, item[w:2*w])
			mine, theirs := surface.Negations(c.text), surface.Negations(p.text)
			turned := (turns(c)+turns(p))%2 != 0
			for j, x := range []float64{
				oneIf(k == 0), oneIf(k == 1), cosine(c.mean, p.mean), covered(c, p), covered(p, c), returned(p, c), returned(c, p),
				oneIf((mine-theirs)%2 != 0), oneIf(mine > 0), oneIf(theirs > 0), oneIf(turned), oneIf(heading(c)*heading(p) < 0),
				math.Log1p(float64(len(c.words))) / 4, math.Log1p(float64(len(p.words))) / 4,
			} {
				item[2*w+j] = rounded(x)
			}
			items = append(items, item)
		}
	}
	return items
}

// covered is the share of a piece's content words whose stems another has.
func covered(c, p *piece) float64 {
	n, of := 0, 0
	for _, w := range c.words {
		if w.kind != small {
			of++
			if p.stems[w.stem] > 0 {
				n++
			}
		}
	}
	return ratio(n, of)
}

// odds are what networks say of a claim, as the mean of their log odds: of Supported, of
// Contradicted against unsupported, and of Supported against Contradicted.
type odds struct{ supported, contradicted, either float64 }

func netOdds(nets []*learn.Bag, items [][][]float32) odds {
	var sum odds
	if len(items) == 0 || len(items[0]) == 0 || len(nets) == 0 {
		return sum
	}
	for _, b := range nets {
		o := b.LogOdds(items)
		u, s, c := float64(o[EditUnsupported]), float64(o[EditSupported]), float64(o[EditContradicted])
		most := max(u, c)
		sum.supported += s - most - math.Log(math.Exp(u-most)+math.Exp(c-most))
		sum.contradicted += c - u
		sum.either += s - c
	}
	const unit = 1000 // rounded so that machines agree
	n := float64(len(nets))
	for _, x := range []*float64{&sum.supported, &sum.contradicted, &sum.either} {
		*x = math.Round(*x/n*unit) / unit
	}
	return sum
}

// edits are what the networks say of the claim as a whole.
func (s *comparison) edits(f *features) {
	f.group = "edit"
	var o odds
	if s.learned != nil {
		o = netOdds(s.learned.Bags, s.items)
	}
	f.add("supported", o.supported)
	f.add("contradicted", o.contradicted)
	f.add("either", o.either)
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
	for i, p := range []Space{e.Context, e.Alone, e.Whole} {
		width := []int{EditWidth, EditWidth, WholeWidth}[i]
		if len(p.Rows) != width || slices.ContainsFunc(p.Rows, func(row []float32) bool { return len(row) != len(p.Mean) }) {
			return nil, fmt.Errorf("the weights of edits are of another size: %w", assay.ErrDamaged)
		}
	}
	shape := EditShape()
	for _, b := range e.Bags {
		if b == nil || !b.Alike(shape) || !b.Fits() {
			return nil, fmt.Errorf("the weights of edits are of another size: %w", assay.ErrDamaged)
		}
	}
	return e, nil
}

//go:embed weights_edits.json.gz
var editFiles embed.FS

// ShippedEdits returns the networks in the binary. What is not networks is
// assay.ErrDamaged.
var ShippedEdits = sync.OnceValues(func() (*Edits, error) {
	data, err := editFiles.ReadFile("weights_edits.json.gz")
	if err != nil {
		return nil, err
	}
	return DecodeEdits(data)
})
