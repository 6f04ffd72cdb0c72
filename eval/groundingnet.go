package eval

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/learn"
)

// How the networks are trained. With more rounds they get better on made claims and worse
// on real ones: of networks that saw the claim's words alone, after 4 against 10 the area under the curve of supported against the rest
// is 0.76 against 0.74 on WiCE, 0.73 and 0.71 on SciFact, 0.66 and 0.64 on SummEdits.
const (
	editSeeds  = 4
	editEpochs = 4
	editRate   = 2e-3
	editDecay  = 1e-3
	editDrop   = 0.3
	tuneEpochs = 4
	tuneMade   = 1200 // made cases among those that they are trained further with
	tuneRate   = 1e-3
)

// ForEdits parts made cases into those that the networks learn from, three quarters, and
// those that are left for what learns from the networks' scores. All cases of a text are
// on one side.
func ForEdits(cases []GroundingCase) (networks, rest []GroundingCase) {
	for _, c := range cases {
		if hashed("edits "+opening(strings.Join(c.Evidence, " ")))%4 != 0 {
			networks = append(networks, c)
		} else {
			rest = append(rest, c)
		}
	}
	return networks, rest
}

// TrainEdits learns from labelled claims how a word of a claim stands to its evidence
// where it is right and where it was changed. It is deterministic on one machine.
func TrainEdits(ctx context.Context, cases []GroundingCase, encoder ground.Encoder, progress func(done, all int)) (*ground.Edits, error) {
	e := &ground.Edits{}
	recent := newRecentTexts(encoder)
	if err := learnSpaces(ctx, e, cases, recent); err != nil {
		return nil, err
	}
	items := make([][][][]float32, len(cases))
	step := inTurn(len(cases), progress)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range cases {
		g.Go(func() error {
			m, err := ground.Measure(gctx, recent, e, c.Claim, c.Cited())
			if err != nil {
				return fmt.Errorf("claim %s: %w", c.ID, err)
			}
			items[i] = m.Items
			step()
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	examples := editExamples(cases, items)
	if len(examples) == 0 {
		return nil, fmt.Errorf("no claim has a word to learn from: %w", assay.ErrInvalid)
	}
	e.Bags = make([]*learn.Bag, editSeeds)
	for seed := range e.Bags {
		g.Go(func() error {
			e.Bags[seed] = learn.TrainBag(ground.EditShape(), examples, learn.BagConfig{
				Epochs: editEpochs, Batch: 32, Rate: editRate, Decay: editDecay, Drop: editDrop, Seed: uint64(seed + 1),
			})
			return nil
		})
	}
	return e, g.Wait()
}

// tuneEdits trains networks further, with labelled claims: each set weighs alike, and within
// it supported claims as much as others.
func tuneEdits(nets []*learn.Bag, cases []measured, seed uint64) []*learn.Bag {
	seeded := 0
	for _, c := range cases {
		seeded += oneIf(c.seeded)
	}
	stride := max(1, seeded/tuneMade)
	weights := weigh(cases, func(c measured) int {
		if len(c.Items) == 0 || len(c.Items[0]) == 0 {
			return -1
		}
		return oneIf(c.supported())
	})
	var examples []learn.BagExample
	sum := 0.0
	for i, c := range cases {
		if weights[i] == 0 || c.seeded && i%stride != 0 {
			continue
		}
		class := ground.EditUnsupported
		switch {
		case c.supported():
			class = ground.EditSupported
		case c.against == 1:
			class = ground.EditContradicted
		}
		if c.seeded {
			weights[i] *= float64(stride)
		}
		sum += weights[i]
		examples = append(examples, learn.BagExample{Bags: c.Items, Class: class, Weight: weights[i]})
	}
	for i := range examples {
		examples[i].Weight *= float64(len(examples)) / sum
	}
	out := make([]*learn.Bag, len(nets))
	for i, b := range nets {
		out[i] = learn.TrainBag(ground.EditShape(), examples, learn.BagConfig{
			Epochs: tuneEpochs, Batch: 32, Rate: tuneRate, Decay: editDecay, Drop: editDrop, Seed: seed*editSeeds + uint64(i), Start: b,
		})
	}
	return out
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// editExamples weighs the supported claims like all others together.
func editExamples(cases []GroundingCase, items [][][][]float32) []learn.BagExample {
	class := map[assay.Verdict]int{assay.Unsupported: ground.EditUnsupported, assay.Supported: ground.EditSupported, assay.Contradicted: ground.EditContradicted}
	seen := func(i int) bool { return len(items[i]) > 0 && len(items[i][0]) > 0 }
	supported, all := 0.0, 0.0
	for i, c := range cases {
		if seen(i) {
			all++
			if c.Verdict == assay.Supported {
				supported++
			}
		}
	}
	var out []learn.BagExample
	for i, c := range cases {
		if !seen(i) {
			continue
		}
		weight := all / 2 / max(all-supported, 1)
		if c.Verdict == assay.Supported {
			weight = all / 2 / supported
		}
		out = append(out, learn.BagExample{Bags: items[i], Class: class[c.Verdict], Weight: weight})
	}
	return out
}

// learnSpaces finds along what directions words differ, in sentences and by themselves.
func learnSpaces(ctx context.Context, e *ground.Edits, cases []GroundingCase, encoder ground.Encoder) error {
	const sampled, fromEach, words = 1200, 3, 4000
	var texts, lone []string
	seen := map[string]bool{}
	stride := max(1, len(cases)/sampled)
	for i := 0; i < len(cases); i += stride {
		c := cases[i]
		for _, t := range append([]string{c.Claim}, c.Evidence[:min(fromEach, len(c.Evidence))]...) {
			if t = firstBytes(t); !seen[t] {
				seen[t] = true
				texts = append(texts, t)
			}
			for _, w := range strings.Fields(strings.ToLower(t)) {
				if w = strings.Trim(w, `.,;:()"'!?`); w != "" && !seen["word "+w] && len(lone) < words {
					seen["word "+w] = true
					lone = append(lone, w)
				}
			}
		}
	}
	var err error
	if e.Context, err = spaceOf(ctx, texts, encoder, everyThird, ground.EditWidth); err != nil {
		return err
	}
	if e.Whole, err = spaceOf(ctx, texts, encoder, meanOfAll, ground.WholeWidth); err != nil {
		return err
	}
	e.Alone, err = spaceOf(ctx, lone, encoder, every, ground.EditWidth)
	return err
}

// firstBytes keeps of a text what any encoder takes.
func firstBytes(text string) string {
	const most = 900
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// Which vectors a space is found from: every third token's, every token's, or the mean of a
// text's.
type sampling int

const (
	meanOfAll  sampling = 0
	every      sampling = 1
	everyThird sampling = 3
)

// spaceOf finds one of so many rows.
func spaceOf(ctx context.Context, texts []string, encoder ground.Encoder, by sampling, rows int) (ground.Space, error) {
	var vectors [][]float32
	for part := range slices.Chunk(texts, 64) {
		all, err := encoder.Encode(ctx, part)
		if err != nil {
			return ground.Space{}, err
		}
		for _, tokens := range all {
			if by == meanOfAll {
				vectors = append(vectors, wholeOf(tokens))
				continue
			}
			for i := 0; i < len(tokens); i += int(by) {
				vectors = append(vectors, slices.Clone(tokens[i].Vector))
			}
		}
	}
	vectors = slices.DeleteFunc(vectors, func(v []float32) bool { return len(v) == 0 })
	if len(vectors) == 0 {
		return ground.Space{}, fmt.Errorf("no text to learn from: %w", assay.ErrInvalid)
	}
	mean := make([]float32, len(vectors[0]))
	sums := make([]float64, len(mean))
	for _, v := range vectors {
		for i, x := range v {
			sums[i] += float64(x)
		}
	}
	for i := range mean {
		mean[i] = float32(fourPlaces(sums[i] / float64(len(vectors))))
	}
	for k, v := range vectors {
		vectors[k] = ground.Beside(v, mean)
	}
	return ground.Space{Mean: mean, Rows: learn.Principal(vectors, rows)}, nil
}

// wholeOf is the direction of the mean of tokens; nil of none.
func wholeOf(tokens []ground.Token) []float32 {
	if len(tokens) == 0 {
		return nil
	}
	sum := make([]float32, len(tokens[0].Vector))
	for _, t := range tokens {
		for i, x := range t.Vector {
			sum[i] += x
		}
	}
	return ground.Beside(sum, make([]float32, len(sum)))
}

// A recentTexts keeps the vectors of the texts that were encoded last: claims that were
// made of one another share nearly all of theirs. It is safe for concurrent use.
type recentTexts struct {
	encoder ground.Encoder

	mu    sync.Mutex
	known map[string][]ground.Token
	order []string // the oldest first
}

func newRecentTexts(encoder ground.Encoder) *recentTexts {
	return &recentTexts{encoder: encoder, known: map[string][]ground.Token{}}
}

// Encode implements ground.Encoder.
func (r *recentTexts) Encode(ctx context.Context, texts []string) ([][]ground.Token, error) {
	out := make([][]ground.Token, len(texts))
	var missing []string
	var at []int
	r.mu.Lock()
	for i, t := range texts {
		tokens, ok := r.known[t]
		if out[i] = tokens; !ok {
			missing, at = append(missing, t), append(at, i)
		}
	}
	r.mu.Unlock()
	if len(missing) == 0 {
		return out, ctx.Err()
	}
	encoded, err := r.encoder.Encode(ctx, missing)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, t := range missing {
		out[at[k]] = encoded[k]
		if _, ok := r.known[t]; !ok {
			r.known[t] = encoded[k]
			r.order = append(r.order, t)
		}
	}
	const most = 20_000
	for len(r.order) > most {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
	return out, nil
}
