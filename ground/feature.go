package ground

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
)

// Measured is how a claim stands to what it cites.
type Measured struct {
	// Features are one number for each of FeatureNames, finite, rounded to four decimals
	// so that machines agree on them.
	Features []float64

	// Items are what networks of EditShape see: a bag for each tower; nil without an
	// encoder.
	Items [][][]float32
}

// Measure measures how a claim stands to what it cites, for [Learned] and for those who
// train it, with the networks of e; nil: those of the program. encoder may be nil: then
// there are only the features by words alone.
//
// Of long texts only the sentences that share the most with the claim are encoded.
func Measure(ctx context.Context, encoder Encoder, e *Edits, claim string, cited []Passage) (Measured, error) {
	if e == nil && encoder != nil {
		var err error
		if e, err = ShippedEdits(); err != nil {
			return Measured{}, err
		}
	}
	s, err := compare(ctx, encoder, e, claim, cited)
	if err != nil {
		return Measured{}, err
	}
	return s.measured(), nil
}

func (s *comparison) measured() Measured {
	return Measured{Features: s.features().values, Items: s.items}
}

// FeatureNames names the features of [Measure], each by its group, a point, and what it
// is: those by words alone, or with vectors all of them, the others first.
func FeatureNames(vectors bool) []string {
	p := &piece{stems: map[string]int{}}
	s := &comparison{claim: []*piece{p}, near: [][]*piece{{p}}, encoded: vectors}
	return s.features().names
}

// A list of features grows by names.
type features struct {
	group  string
	names  []string
	values []float64
}

func (f *features) add(name string, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		x = 0
	}
	f.names = append(f.names, f.group+"."+name)
	f.values = append(f.values, math.Round(x*1e4)/1e4)
}

// A comparison is a claim beside the sentences it cites.
type comparison struct {
	claim    []*piece   // its sentences
	evidence []*piece   // all sentences of what it cites, those of headings last
	near     [][]*piece // for each sentence of the claim those nearest to it, best first
	words    []match    // the claim's words
	encoded  bool
	learned  *Edits
	items    [][][]float32 // what its networks see: a bag for each tower
	strict   Judgement
	quoted   bool       // what is cited has the claim's text in it
	told     []quantity // of all of the evidence; nil: not read yet
}

// A match is what the evidence has of one word of a claim.
type match struct {
	*token
	part            int // index of the claim's sentence
	at              int // in it
	best, near, all bool
	spelt           float64 // likeness of the likest word by its letters, 1 the same stem; of near sentences
	cosine          float64 // of the likest word's vector, in near sentences
	cosineBest      float64 // in the best sentence
	home            float64 // cosine of the words around it to those around its likest word
	other           *token  // the likest word of another stem, by vector
}

const (
	nearest4  = 4  // sentences that a claim's sentence is compared with word for word
	shortlist = 10 // sentences that are encoded for a claim's sentence
)

// compare finds what the evidence has of each word of a claim.
func compare(ctx context.Context, encoder Encoder, e *Edits, claim string, cited []Passage) (*comparison, error) {
	stems := map[string]string{}
	bare, _ := withoutLeadIn(claim, nil)
	s := &comparison{claim: piecesOf(bare, -1, stems), encoded: encoder != nil, learned: e}
	if len(s.claim) == 0 {
		s.claim = []*piece{{text: bare, stems: map[string]int{}}}
	}
	var headings []*piece
	seen := map[string]bool{}
	for i, p := range cited {
		s.evidence = append(s.evidence, piecesOf(p.Context, i, stems)...)
		for _, h := range p.Heading {
			if !seen[h] {
				seen[h] = true
				headings = append(headings, piecesOf(h, -1, stems)...)
			}
		}
		_, _, found := contains(p.Context, claim)
		s.quoted = s.quoted || found
	}
	s.evidence = append(s.evidence, headings...)
	rare := rarity(s.evidence)
	lists := make([][]*piece, len(s.claim))
	for i, c := range s.claim {
		lists[i] = ranked(c, s.evidence, rare, nil)
		lists[i] = lists[i][:min(shortlist, len(lists[i]))]
	}
	if encoder != nil {
		all := slices.Clone(s.claim)
		for _, l := range lists {
			for _, p := range l {
				if !slices.Contains(all, p) {
					all = append(all, p)
				}
			}
		}
		if err := encode(ctx, encoder, all); err != nil {
			return nil, err
		}
		for i, c := range s.claim {
			lists[i] = ranked(c, lists[i], rare, func(p *piece) float64 { return cosine(c.mean, p.mean) })
		}
	}
	s.near = lists
	for i, c := range s.claim {
		s.matchPart(i, c)
	}
	if encoder != nil && e != nil {
		if err := s.align(ctx, encoder, e); err != nil {
			return nil, err
		}
	}
	var err error
	quotes := make([]Passage, len(cited))
	for i, p := range cited {
		quotes[i] = Passage{Quote: p.Context, Context: p.Context, Heading: p.Heading}
	}
	s.strict, err = Local{}.Verify(ctx, claim, quotes)
	return s, err
}

// rarity weighs a stem by how few of the sentences have it.
func rarity(evidence []*piece) map[string]float64 {
	count := map[string]int{}
	for _, p := range evidence {
		for stem := range p.stems {
			count[stem]++
		}
	}
	rare := make(map[string]float64, len(count))
	for stem, n := range count {
		rare[stem] = math.Log(1 + float64(len(evidence))/float64(n))
	}
	return rare
}

// ranked orders sentences by how much of a claim's sentence they have, the more of that
// the rarer its words and the more of them stand side by side; and by what likeness says,
// where it is given. Equals keep their order. What shares nothing comes last.
func ranked(c *piece, from []*piece, rare map[string]float64, likeness func(*piece) float64) []*piece {
	type scored struct {
		*piece
		score float64
	}
	whole := 1e-9
	for _, w := range c.words {
		whole += weightOf(w, rare)
	}
	list := make([]scored, len(from))
	for i, p := range from {
		score := 0.0
		before := ""
		for _, w := range c.words {
			if p.stems[w.stem] > 0 {
				score += weightOf(w, rare)
				if before != "" && p.pair(before, w.stem) {
					score += 0.3 * weightOf(w, rare)
				}
				before = w.stem
			} else {
				before = ""
			}
		}
		score /= whole
		if likeness != nil {
			score += 1.5 * likeness(p)
		}
		list[i] = scored{p, score}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	out := make([]*piece, len(list))
	for i, l := range list {
		out[i] = l.piece
	}
	return out
}

// weightOf is how much a claim's word says where to look for it.
func weightOf(w token, rare map[string]float64) float64 {
	r, ok := rare[w.stem]
	if !ok {
		r = 1
	}
	if w.kind == small {
		return 0.1 * r
	}
	return r
}

// pair reports whether a piece has two stems side by side.
func (p *piece) pair(a, b string) bool {
	for i := 1; i < len(p.words); i++ {
		if p.words[i].stem == b && p.words[i-1].stem == a {
			return true
		}
	}
	return false
}

// matchPart finds what the sentences near a sentence of the claim have of its words.
func (s *comparison) matchPart(part int, c *piece) {
	near := s.near[part]
	near = near[:min(nearest4, len(near))]
	for i := range c.words {
		m := match{token: &c.words[i], part: part, at: i}
		m.all = slices.ContainsFunc(s.evidence, func(p *piece) bool { return p.stems[m.stem] > 0 })
		for k, p := range near {
			held := p.stems[m.stem] > 0
			m.near = m.near || held
			m.best = m.best || held && k == 0
			if s.encoded && c.vectors != nil {
				m.look(c, p, k == 0)
			}
			if held {
				m.spelt = 1
			} else if m.spelt < 1 {
				for j := range p.words {
					m.spelt = max(m.spelt, spelling(m.lower, p.words[j].lower))
				}
			}
		}
		s.words = append(s.words, m)
	}
}

// look compares a word's vector with those of a sentence.
func (m *match) look(c, p *piece, best bool) {
	v := c.vectors[m.at]
	for j, u := range p.vectors {
		x := cosine(v, u)
		if best {
			m.cosineBest = max(m.cosineBest, x)
		}
		if x > m.cosine {
			m.cosine = x
			m.home = around(c, m.at, p, j)
			m.other = nil
			if p.words[j].stem != m.stem {
				m.other = &p.words[j]
			}
		}
	}
}

// around is the mean cosine of the neighbours of two words, each beside its like.
func around(c *piece, i int, p *piece, j int) float64 {
	sum, n := 0.0, 0
	for _, d := range []int{-2, -1, 1, 2} {
		if i+d < 0 || i+d >= len(c.vectors) {
			continue
		}
		n++
		if j+d >= 0 && j+d < len(p.vectors) {
			sum += cosine(c.vectors[i+d], p.vectors[j+d])
		}
	}
	if n == 0 {
		return 1
	}
	return sum / float64(n)
}

// spelling is the likeness of two words by their letters: the share of the longer one
// that both begin with, 0 below half.
func spelling(a, b string) float64 {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	share := float64(n) / float64(max(len(a), len(b), 1))
	if n < 4 || share < 0.5 {
		return 0
	}
	return share
}

// features measures it all.
func (s *comparison) features() *features {
	f := &features{}
	s.sizes(f)
	s.coverage(f)
	s.kinds(f)
	s.sequence(f)
	s.marks(f)
	s.opposites(f)
	s.facts(f)
	s.rules(f)
	if s.encoded {
		s.vectors(f)
		s.edits(f)
	}
	return f
}

// bestOf is the sentence nearest to a sentence of the claim; nil where there is none.
func (s *comparison) bestOf(part int) *piece {
	if part < len(s.near) && len(s.near[part]) > 0 {
		return s.near[part][0]
	}
	return nil
}

func ratio(n, of int) float64 {
	return float64(n) / float64(max(of, 1))
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// rules are what the strict rules say.
func (s *comparison) rules(f *features) {
	f.group = "rules"
	f.add("supported", oneIf(s.strict.Verdict == "supported"))
	f.add("contradicted", oneIf(s.strict.Verdict == "contradicted"))
	f.add("score", s.strict.Score)
	f.add("quoted", oneIf(s.quoted))
	f.add("number", oneIf(strings.Contains(s.strict.Reason, "number")))
	var vetoes [len(vetoKinds)]int
	for i, c := range s.claim {
		for k, reason := range s.vetoes(i, c) {
			vetoes[k] += int(oneIf(reason != ""))
		}
	}
	for k, kind := range vetoKinds {
		f.add("veto_"+kind, float64(min(vetoes[k], 2)))
	}
}
