package ground

import (
	"context"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// A piece is a sentence, of a claim or of what it cites, as the learned verifier reads it.
type piece struct {
	text       string
	passage    int // index of the passage; -1: a claim's, or a heading
	start, end int // of text in the passage's Context
	words      []token
	stems      map[string]int // how often each stem stands in it
	vectors    [][]float32    // of each word; nil without an encoder
	centred    [][]float32    // vectors beside the mean of all words; nil until they are asked for
	mean       []float32      // of the words, of unit length; nil without an encoder
}

// A token is a word of a piece.
type token struct {
	start, end int // in the piece's text
	raw, lower string
	stem       string // of a number its plain digits
	kind       kind
}

// A kind is what a word is by its form.
type kind int

const (
	small  kind = iota // carries no content of its own
	plain              // any other word
	number             // in digits or words
	name               // a capital, or digits and letters mixed
)

// maxPieceWords bounds a piece: what has no stops, as tables and code, is cut at this
// many words. No encoder takes fewer tokens than such a piece has, unless its words are
// very long ones.
const maxPieceWords = 80

// maxPieceBytes bounds a piece where a text has hardly any blanks.
const maxPieceBytes = 900

// piecesOf cuts a text into pieces.
func piecesOf(text string, passage int, stems map[string]string) []*piece {
	var out []*piece
	for _, sp := range sentence.Spans(text) {
		for start := sp.Start; start < sp.End; {
			end := cutAt(text, start, sp.End)
			p := &piece{text: text[start:end], passage: passage, start: start, end: end}
			p.read(stems)
			if len(p.words) > 0 {
				out = append(out, p)
			}
			start = end
		}
	}
	return out
}

// cutAt returns where a piece that begins at start ends: at end, or sooner where that is
// too far.
func cutAt(text string, start, end int) int {
	words, blank := 0, true
	last := -1 // the last blank
	for i, r := range text[start:end] {
		if i >= maxPieceBytes {
			if last > 0 {
				return start + last
			}
			return start + i
		}
		space := unicode.IsSpace(r)
		if space {
			last = i
			if words >= maxPieceWords || r == '\n' && words >= maxPieceWords/2 {
				return start + i
			}
		} else if blank {
			words++
		}
		blank = space
	}
	return end
}

// read finds the words of a piece.
func (p *piece) read(stems map[string]string) {
	p.stems = map[string]int{}
	at := 0
	first := true
	for _, w := range surface.Words(p.text) {
		from := at + strings.Index(p.text[at:], w)
		at = from + len(w)
		for _, sp := range hyphenated(w) {
			raw := w[sp[0]:sp[1]]
			t := token{start: from + sp[0], end: from + sp[1], raw: raw, lower: strings.ReplaceAll(strings.ToLower(raw), "’", "'")}
			t.read(first, stems)
			first = false
			p.words = append(p.words, t)
			p.stems[t.stem]++
		}
	}
}

// hyphenated returns the parts of a word between hyphens.
func hyphenated(w string) [][2]int {
	var out [][2]int
	start := 0
	for i, r := range w {
		if r == '-' || r == '‑' {
			if i > start {
				out = append(out, [2]int{start, i})
			}
			start = i + utf8.RuneLen(r)
		}
	}
	if start < len(w) {
		out = append(out, [2]int{start, len(w)})
	}
	return out
}

func (t *token) read(first bool, stems map[string]string) {
	if n := surface.Numbers(t.raw); len(n) == 1 {
		t.kind, t.stem = number, n[0]
		return
	}
	stem, ok := stems[t.lower]
	if !ok {
		stem = stemOf(t.lower)
		if stem == "" {
			stem = t.lower
		}
		stems[t.lower] = stem
	}
	t.stem = stem
	r, _ := utf8.DecodeRuneInString(t.raw)
	switch {
	case surface.Function(t.lower):
		t.kind = small
	case unicode.IsUpper(r) && !first, mixed(t.raw):
		t.kind = name
	default:
		t.kind = plain
	}
}

// mixed reports whether a word has a capital behind its first letter, or digits and
// letters.
func mixed(w string) bool {
	letter, digit := false, false
	for i, r := range w {
		if i > 0 && unicode.IsUpper(r) {
			return true
		}
		letter = letter || unicode.IsLetter(r)
		digit = digit || unicode.IsDigit(r)
	}
	return letter && digit
}

// encode gives pieces their vectors, those of them that have none.
func encode(ctx context.Context, encoder Encoder, pieces []*piece) error {
	var texts []string
	var todo []*piece
	for _, p := range pieces {
		if p.vectors == nil {
			todo, texts = append(todo, p), append(texts, p.text)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	all, err := encoder.Encode(ctx, texts)
	if err != nil {
		return fmt.Errorf("encode %d sentences: %w", len(texts), err)
	}
	if len(all) != len(texts) {
		return fmt.Errorf("encode %d sentences: the encoder returned %d", len(texts), len(all))
	}
	for i, p := range todo {
		if err := p.take(all[i]); err != nil {
			return err
		}
	}
	return nil
}

// take gives each word the mean of the vectors of the tokens that overlap it.
func (p *piece) take(tokens []Token) error {
	dim := 0
	for _, t := range tokens {
		if t.Start < 0 || t.End > len(p.text) || t.Start > t.End || len(t.Vector) == 0 || dim > 0 && len(t.Vector) != dim {
			return fmt.Errorf("encode a sentence: token [%d, %d) with %d numbers of a text of %d bytes", t.Start, t.End, len(t.Vector), len(p.text))
		}
		dim = len(t.Vector)
	}
	p.mean = make([]float32, dim)
	for _, t := range tokens {
		for i, x := range t.Vector {
			p.mean[i] += x
		}
	}
	unit(p.mean)
	p.vectors = make([][]float32, len(p.words))
	at := 0
	for i, w := range p.words {
		v := make([]float32, dim)
		for at < len(tokens) && tokens[at].End <= w.start {
			at++
		}
		for j := at; j < len(tokens) && tokens[j].Start < w.end; j++ {
			for k, x := range tokens[j].Vector {
				v[k] += x
			}
		}
		unit(v)
		p.vectors[i] = v
	}
	return nil
}

// unit brings a vector to unit length; that of no direction stays.
func unit(v []float32) {
	square := 0.0
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if square > 0 && !math.IsInf(square, 0) && !math.IsNaN(square) {
		scale := float32(1 / math.Sqrt(square))
		for i := range v {
			v[i] *= scale
		}
	}
}

// cosine is that of two vectors of unit length; 0 where they are not of one space.
func cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return float64(s0 + s1 + s2 + s3)
}
