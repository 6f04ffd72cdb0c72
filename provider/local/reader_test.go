package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safetensors"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

func TestReaderContract(t *testing.T) {
	for name, write := range map[string]rewriting{"float32": rewriteF32, "int8": rewriteI8} {
		t.Run(name, func(t *testing.T) {
			r := openFiles(t, randomReader(t, write))
			llmtest.TestReader(t, func(testing.TB) llm.Reader { return r })
		})
	}
}

// manyPairs returns claims and passages of many lengths, some of which need several windows.
func manyPairs() []llm.ClaimPair {
	random := sequenceOf(4)
	var pairs []llm.ClaimPair
	for i := range 60 {
		pairs = append(pairs, llm.ClaimPair{
			Claim:   wordsOf(1 + random.next(20)),
			Passage: llm.Excerpt{Heading: wordsOf(random.next(i%7 + 1)), Text: wordsOf(1+random.next(90)) + "in the museum. " + wordsOf(random.next(30))},
		})
	}
	return pairs
}

// TestReaderBits checks that the numbers for a pair are identical bit for bit, regardless of other
// pairs and the number of cores.
func TestReaderBits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	pairs := manyPairs()
	for name, write := range map[string]rewriting{"float32": rewriteF32, "int8": rewriteI8} {
		r := openFiles(t, randomReader(t, write))
		want, err := r.compute(t.Context(), pairs)
		if err != nil {
			t.Fatal(err)
		}
		for _, cores := range []int{2, 3, 8} {
			runtime.GOMAXPROCS(cores)
			got, err := openFiles(t, randomReader(t, write)).compute(t.Context(), pairs)
			if err != nil {
				t.Fatal(err)
			}
			compareLogits(t, fmt.Sprintf("%s, %d cores", name, cores), want, got)
		}
		for i, p := range pairs {
			alone, err := r.compute(t.Context(), []llm.ClaimPair{p})
			if err != nil {
				t.Fatal(err)
			}
			compareLogits(t, fmt.Sprintf("%s, pair %d alone", name, i), want[i:i+1], alone)
		}
	}
}

func compareLogits(t *testing.T, what string, want, got [][]logits) {
	t.Helper()
	for i := range want {
		for k, w := range want[i] {
			g := got[i][k]
			if !slices.Equal(w.spans, g.spans) || w.relevance != g.relevance || w.entailment != g.entailment {
				t.Errorf("%s: pair %d, window %d has other logits", what, i, k)
			}
		}
	}
}

// TestReaderSharesLayers compares a file without the frozen layers with one that has them.
func TestReaderSharesLayers(t *testing.T) {
	files := randomReader(t, rewriteF32)
	part := openFiles(t, files)
	all := tensorsOf(t, files[weightsFile].Data)
	for _, d := range tensorsOf(t, tiny(t, "tiny")[weightsFile].Data) {
		shared := strings.HasPrefix(d.Name, "embeddings.") || strings.HasPrefix(d.Name, layerName(0))
		if shared && !strings.Contains(d.Name, "word_embeddings") && d.Type != "I64" {
			all = append(all, d)
		}
	}
	setTensors(t, files, all)
	whole := openFiles(t, files)
	if &part.bert.positions[0] == &whole.bert.positions[0] {
		t.Fatal("the whole file was not read")
	}
	pairs := manyPairs()[:8]
	want, err := whole.compute(t.Context(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := part.compute(t.Context(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	compareLogits(t, "without the frozen tensors", want, got)
}

// TestReaderFewerLayers compares a reader that has fewer layers than its encoder with the encoder
// truncated to these layers.
func TestReaderFewerLayers(t *testing.T) {
	files := fstest.MapFS{}
	settings := tinyReaderSettings()
	settings["layers"] = 1
	setReader(t, files, settings)
	var lowest []safetensors.Data
	for _, d := range tensorsOf(t, tiny(t, "tiny")[weightsFile].Data) {
		if strings.HasPrefix(d.Name, layerName(0)) {
			lowest = append(lowest, d)
		}
	}
	setTensors(t, files, append(lowest, randomTensors(0, 0, 32, 80, rewriteF32)...))
	r := openFiles(t, files)
	pairs := manyPairs()[:3]
	got, err := r.compute(t.Context(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	r.bert.layers = open(t, filepath.Join("testdata", "tiny")).bert.layers[:1]
	want, err := r.compute(t.Context(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	compareLogits(t, "one layer", want, got)
}

// TestReaderInput checks the form of the input and the division of the room.
func TestReaderInput(t *testing.T) {
	r := openRandom(t)
	cls, sep, colon := r.tokenizer.cls, r.tokenizer.sep, r.tokenizer.colon()[0]
	ids := func(text string) []int32 { return r.tokenizer.encode(nil, text) }
	join := func(parts ...[]int32) []int32 { return slices.Concat(parts...) }
	long := wordsOf(30)
	for name, test := range map[string]struct {
		a, heading, text string
		want             []int32
		second           int
	}{
		"plain":         {"the river", "", "a court", join([]int32{cls}, ids("the river"), []int32{sep}, ids("a court"), []int32{sep}), 4},
		"heading":       {"the river", "market", "a court", join([]int32{cls}, ids("the river"), []int32{sep}, ids("market"), []int32{colon}, ids("a court"), []int32{sep}), 4},
		"special names": {"[CLS] a", "[SEP]", "[SEP] a", join([]int32{cls}, ids("[ CLS ] a"), []int32{sep}, ids("[ SEP ]"), []int32{colon}, ids("[ SEP ] a"), []int32{sep}), 2 + len(ids("[ CLS ] a"))},
		"long heading":  {"a", long, "a court", join([]int32{cls}, ids("a"), []int32{sep}, ids(long)[len(ids(long))-16:], []int32{colon}, ids("a court"), []int32{sep}), 3},
		"blank heading": {"a", " ", "a court", join([]int32{cls}, ids("a"), []int32{sep}, ids("a court"), []int32{sep}), 3},
	} {
		windows, err := r.cut(r.tokenizer.locate(test.a).ids, llm.Excerpt{Heading: test.heading, Text: test.text}, 0)
		if err != nil || len(windows) != 1 {
			t.Fatalf("%s: %d windows, %v", name, len(windows), err)
		}
		w := windows[0]
		if !slices.Equal(w.ids, test.want) || w.second != test.second {
			t.Errorf("%s: tokens %d, second from %d, want %d from %d", name, w.ids, w.second, test.want, test.second)
		}
		if n := len(ids(test.text)); !strings.Contains(test.text, "[") && !slices.Equal(w.ids[w.first:w.first+n], ids(test.text)) {
			t.Errorf("%s: the text begins at %d", name, w.first)
		}
	}
}

// TestReaderRoom checks that a heading is shortened in favour of the text, but a question is not.
func TestReaderRoom(t *testing.T) {
	r := openRandom(t) // 64 tokens, at least 16 of them for a text
	text := wordsOf(100)
	tests := []struct{ question, heading, text int }{{1, 0, 60}, {1, 30, 60 - 17}, {30, 30, 64 - 33 - 15}, {44, 30, 17}, {45, 30, 16}}
	for _, test := range tests {
		a := r.tokenizer.locate(wordsOf(test.question)).ids
		windows, err := r.cut(a, llm.Excerpt{Heading: wordsOf(test.heading), Text: text}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range windows {
			if len(w.ids) > 64 || w.to-w.from > test.text {
				t.Errorf("%+v: a window of %d tokens with %d of the text", test, len(w.ids), w.to-w.from)
			}
		}
		if got := windows[0].to - windows[0].from; got < test.text-2 {
			t.Errorf("%+v: %d tokens of the text are read at once", test, got)
		}
	}
	var long *llm.TooLongError
	_, err := r.Read(t.Context(), wordsOf(46), []llm.Excerpt{{Text: "a"}, {Text: text}})
	if !errors.As(err, &long) || *long != (llm.TooLongError{Model: r.Model(), Text: 1, Tokens: long.Tokens, Limit: 64}) {
		t.Errorf("error %v, want a TooLongError of passage 1", err)
	}
	if _, err := r.Read(t.Context(), wordsOf(46), []llm.Excerpt{{Text: "a court"}}); err != nil {
		t.Errorf("a short text beside a long question: %v", err)
	}
}

// TestParts checks that windows cover a text with an overlap and begin between words.
func TestParts(t *testing.T) {
	random := sequenceOf(8)
	for _, room := range []int{8, 16, 40, 64, 219} {
		for n := 1; n < 1200; n += 7 {
			text := &located{}
			for len(text.ids) < n { // words of 1 to 3 pieces
				for range 1 + random.next(3) {
					text.ids, text.starts = append(text.ids, 0), append(text.starts, len(text.ids)/4)
				}
			}
			if n%2 == 0 { // one word
				clear(text.starts)
			}
			checkParts(t, text, room)
		}
	}
}

func checkParts(t *testing.T, text *located, room int) {
	t.Helper()
	all, n := parts(text, room), len(text.ids)
	if all[0][0] != 0 || all[len(all)-1][1] != n {
		t.Fatalf("%d tokens, room for %d: the parts are %v", n, room, all)
	}
	for i, p := range all {
		if p[1]-p[0] > room || p[1] <= p[0] {
			t.Fatalf("%d tokens, room for %d: part %v", n, room, p)
		}
		if i > 0 && (p[0] > all[i-1][1] || p[0] <= all[i-1][0]) {
			t.Fatalf("%d tokens, room for %d: between %v and %v a part is left out", n, room, all[i-1], p)
		}
	}
	if least := (n - 1) / room; len(all) > 2+2*least {
		t.Errorf("%d tokens, room for %d: %d parts", n, room, len(all))
	}
}

// TestReaderWindows compares the reading of a long text with those of its windows.
func TestReaderWindows(t *testing.T) {
	r := openRandom(t)
	pairs := []llm.ClaimPair{{Claim: "the river market", Passage: llm.Excerpt{Text: wordsOf(150)}}}
	all, err := r.compute(t.Context(), pairs)
	if err != nil || len(all[0]) < 3 {
		t.Fatalf("%d windows, %v", len(all[0]), err)
	}
	got, err := r.Read(t.Context(), pairs[0].Claim, []llm.Excerpt{pairs[0].Passage})
	if err != nil {
		t.Fatal(err)
	}
	var want llm.Reading
	best := 0.0
	for _, w := range all[0] {
		one := r.reading([]logits{w})
		want.Answerable = max(want.Answerable, one.Answerable)
		want.Relevance = max(want.Relevance, one.Relevance)
		best = max(best, one.Answerable*one.Spans[0].Score)
	}
	if got[0].Answerable != want.Answerable || got[0].Relevance != want.Relevance {
		t.Errorf("%+v, want the largest of the windows, %+v", got[0], want)
	}
	if p := got[0].Answerable * got[0].Spans[0].Score; math.Abs(p-best) > 1e-12 {
		t.Errorf("the best span has %g, want %g", p, best)
	}
}

// TestEntailedWindows checks the choice of the window that decides.
func TestEntailedWindows(t *testing.T) {
	r := openRandom(t)
	r.entailmentScale = 1
	text := r.tokenizer.locate("the river")
	of := func(p ...float64) logits {
		l := logits{window: window{text: &text, to: 2}, spans: make([]float32, 4)}
		for i := range p {
			l.entailment[i] = math.Log(p[i])
		}
		return l
	}
	supports, contradicts, neutral := of(.6, .1, .3), of(.1, .7, .2), of(.1, .1, .8)
	leansBoth, leansMore := of(.3, .3, .4), of(.35, .05, .6)
	for name, test := range map[string]struct {
		windows []logits
		want    int
	}{
		"one":                   {[]logits{neutral}, 0},
		"support wins":          {[]logits{neutral, supports, contradicts}, 1},
		"contradiction wins":    {[]logits{neutral, leansMore, contradicts}, 2},
		"the least neutral":     {[]logits{neutral, leansBoth, leansMore}, 2},
		"the most supporting":   {[]logits{of(.5, .1, .4), supports}, 1},
		"support of the second": {[]logits{of(.45, .55, .001), of(.44, .01, .55)}, 0},
	} {
		p := softmax(test.windows[test.want].entailment[:], 1)
		got := r.entailed(test.windows)
		if got.Supported != p[0] || got.Contradicted != p[1] || got.Decisive.End != 3 && got.Decisive.End != 9 {
			t.Errorf("%s: %+v, want window %d", name, got, test.want)
		}
	}
}

// TestExtracts compares spans with an exhaustive search.
func TestExtracts(t *testing.T) {
	text := "café wonderfulness, 1,000 days"
	r := openRandom(t)
	located := r.tokenizer.locate(text)
	n := len(located.ids)
	random := sequenceOf(6)
	for range 50 {
		l := logits{window: window{text: &located, to: n, first: 1}, spans: make([]float32, 2*(n+2))}
		for i := range l.spans {
			l.spans[i] = float32(random.next(1000)) / 200
		}
		got := l.extracts(maxSpans)
		start, end := softmax(l.column(0), 1), softmax(l.column(1), 1)
		best := 0.0
		for i := range n {
			for j := i; j < n; j++ {
				best = max(best, start[i]*end[j])
			}
		}
		if got[0].Score != best {
			t.Errorf("the best span has the score %g, want %g", got[0].Score, best)
		}
		if err := llmtest.CheckReading(llm.Reading{Spans: got}, text); err != nil {
			t.Error(err)
		}
		for _, s := range got {
			if before, after := text[:s.Start], text[s.End:]; endsWithWord(before) && startsWithWord(text[s.Start:]) || endsWithWord(text[:s.End]) && startsWithWord(after) {
				t.Errorf("%q cuts a word", text[s.Start:s.End])
			}
		}
	}
}

// TestExtractsAreShort checks that a span has at most 48 tokens.
func TestExtractsAreShort(t *testing.T) {
	r := openRandom(t)
	located := r.tokenizer.locate(wordsOf(100))
	l := logits{window: window{text: &located, to: 100}, spans: make([]float32, 200)}
	l.spans[2*10], l.spans[2*80+1], l.spans[2*57+1] = 9, 9, 8
	got := l.extracts(1)[0]
	if want := (llm.Extract{Start: located.starts[10], End: located.ends[57], Score: got.Score}); got != want {
		t.Errorf("the span %+v, want %+v", got, want)
	}
}

// TestAnswerable compares the logit with its definition.
func TestAnswerable(t *testing.T) {
	l := logits{window: window{first: 2, to: 2}, spans: []float32{1, 2, 9, 9, 0.5, 1.5, -0.5, 2.5, 7, 7}}
	want := (math.Log(math.Exp(0.5)+math.Exp(-0.5)) - 1 + math.Log(math.Exp(1.5)+math.Exp(2.5)) - 2) / 2
	if got := l.answerable(); math.Abs(got-want) > 1e-12 {
		t.Errorf("the logit is %g, want %g", got, want)
	}
}

// TestLocate compares tokens with those of encode, and checks their positions.
func TestLocate(t *testing.T) {
	r := openRandom(t)
	for text, want := range map[string][]string{
		"The café's river":           {"The", "café", "'", "s", "river"},
		"cafe\u0301, x":              {"cafe\u0301", ",", "x"},
		"a\u200bb 漢字":                {"a\u200bb", "漢", "字"},
		" \t1,000 \n":                {"1", ",", "000"},
		"":                           nil,
		"\xff a":                     nil,
		"[SEP]":                      {"[", "SEP", "]"},
		"ﬁne İstanbul":               {"ﬁne", "İstanbul"},
		strings.Repeat("x", 150):     {strings.Repeat("x", 150)},
		"wonderfulness\u00ad hyphen": {"wonderfulness", "hyphen"},
	} {
		l := r.tokenizer.locate(text)
		var got []string
		for i := range l.ids {
			if !l.continues(i) {
				got = append(got, text[l.starts[i]:l.ends[i]])
			}
		}
		if want != nil || text == "" {
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%q (-want +got):\n%s", text, d)
			}
		}
		if ids := r.tokenizer.encode(nil, text); !strings.Contains(text, "[") && !slices.Equal(ids, l.ids) {
			t.Errorf("%q has the tokens %d, want %d", text, l.ids, ids)
		}
	}
}

// TestOpenReaderRefuses checks the message and kind of the error for each defect of the files.
func TestOpenReaderRefuses(t *testing.T) {
	settings := func(change func(map[string]any)) func(testing.TB, fstest.MapFS) {
		return func(t testing.TB, files fstest.MapFS) {
			s := tinyReaderSettings()
			change(s)
			setReader(t, files, s)
		}
	}
	tensors := func(change func([]safetensors.Data) []safetensors.Data) func(testing.TB, fstest.MapFS) {
		return func(t testing.TB, files fstest.MapFS) {
			setTensors(t, files, change(tensorsOf(t, files[weightsFile].Data)))
		}
	}
	lacks := func(prefix string) func(testing.TB, fstest.MapFS) {
		return tensors(func(all []safetensors.Data) []safetensors.Data { return without(all, prefix) })
	}
	with := func(name string, shape ...int) func(testing.TB, fstest.MapFS) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return tensors(func(all []safetensors.Data) []safetensors.Data {
			return append(without(all, name), safetensors.Float32Data(name, make([]float32, n), shape...))
		})
	}
	for name, test := range map[string]struct {
		spoil   func(testing.TB, fstest.MapFS)
		kind    error
		message string
	}{
		"no reader.json":     {func(_ testing.TB, f fstest.MapFS) { delete(f, readerFile) }, fs.ErrNotExist, readerFile},
		"no weights":         {func(_ testing.TB, f fstest.MapFS) { delete(f, weightsFile) }, fs.ErrNotExist, weightsFile},
		"reader.json torn":   {func(_ testing.TB, f fstest.MapFS) { f[readerFile].Data = f[readerFile].Data[:20] }, assay.ErrDamaged, readerFile},
		"weights torn":       {func(_ testing.TB, f fstest.MapFS) { f[weightsFile].Data = f[weightsFile].Data[:5000] }, assay.ErrDamaged, weightsFile},
		"another encoder":    {settings(func(s map[string]any) { s["encoder"] = "bge" }), assay.ErrInvalid, `reader.json: the reader belongs to encoder "bge"`},
		"half its name":      {settings(func(s map[string]any) { s["encoder"] = "tin" }), assay.ErrInvalid, `"tin"`},
		"no encoder":         {settings(func(s map[string]any) { delete(s, "encoder") }), assay.ErrInvalid, readerFile},
		"no limit":           {settings(func(s map[string]any) { delete(s, "max_tokens") }), assay.ErrDamaged, "reader.json: max_tokens is 0"},
		"over its positions": {settings(func(s map[string]any) { s["max_tokens"] = 65 }), assay.ErrDamaged, "max_tokens is 65"},
		"too many layers":    {settings(func(s map[string]any) { s["layers"] = 3 }), assay.ErrDamaged, "reader.json: layers is 3"},
		"fewer layers":       {settings(func(s map[string]any) { s["layers"] = 1 }), assay.ErrDamaged, "no layer tensors"},
		"no calibration":     {settings(func(s map[string]any) { delete(s, "relevance") }), assay.ErrDamaged, "reader.json: relevance lacks"},
		"no bias":            {settings(func(s map[string]any) { s["answerable"] = map[string]any{"scale": 1} }), assay.ErrDamaged, "answerable lacks"},
		"no scale":           {settings(func(s map[string]any) { delete(s, "entailment") }), assay.ErrDamaged, "entailment lacks"},
		"a scale of zero":    {settings(func(s map[string]any) { s["entailment"] = map[string]any{"scale": 0} }), assay.ErrDamaged, "entailment has the scale 0"},
		"a negative scale":   {settings(func(s map[string]any) { s["answerable"] = map[string]any{"scale": -1, "bias": 0} }), assay.ErrDamaged, "answerable has the scale -1"},
		"an enormous bias":   {settings(func(s map[string]any) { s["answerable"] = map[string]any{"scale": 1, "bias": 1e300} }), assay.ErrDamaged, "the bias 1e+300"},
		"words of its own":   {with("embeddings.word_embeddings.weight", 123, 32), assay.ErrInvalid, "word_embeddings"},
		"odd positions":      {with("embeddings.position_embeddings.weight", 32, 32), assay.ErrDamaged, "position_embeddings"},
		"half a norm":        {with("embeddings.LayerNorm.weight", 32), assay.ErrDamaged, "LayerNorm.bias is missing"},
		"no layers":          {lacks("encoder."), assay.ErrDamaged, "no layer tensors"},
		"half a layer":       {lacks("encoder.layer.1.output.dense.weight"), assay.ErrDamaged, "output.dense.weight is missing"},
		"a part of a layer":  {with("encoder.layer.0.output.dense.bias", 32), assay.ErrDamaged, "encoder.layer.0."},
		"another width":      {with("encoder.layer.1.intermediate.dense.bias", 81), assay.ErrDamaged, "intermediate.dense.bias has the shape [81]"},
		"a layer too many":   {with("encoder.layer.2."+layerWeights, 32, 32), assay.ErrDamaged, "the model has 2 layers"},
		"no span head":       {lacks("span."), assay.ErrDamaged, "span.bias is missing"},
		"two classes":        {with("entailment.bias", 2), assay.ErrDamaged, "entailment.bias has the shape [2]"},
		"a wide relevance":   {with("relevance.weight", 1, 33), assay.ErrDamaged, "relevance.weight has the shape [1 33]"},
		"a head without scale": {tensors(func(all []safetensors.Data) []safetensors.Data {
			return append(without(all, "span.weight"), safetensors.Data{Name: "span.weight", Type: safetensors.I8, Shape: []int{2, 32}, Bytes: make([]byte, 64)})
		}), assay.ErrDamaged, "span.weight.scale is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			files := randomReader(t, rewriteF32)
			test.spoil(t, files)
			_, err := OpenReader(t.Context(), files, Config{Name: "spoilt"}, open(t, filepath.Join("testdata", "tiny")))
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), "spoilt") {
				t.Errorf("error %q, want one of kind %q with %q", err, test.kind, test.message)
			}
		})
	}
}

// TestReaderDamagedNumbers checks that NaN in the weights is an error.
func TestReaderDamagedNumbers(t *testing.T) {
	for _, spoilt := range []string{"span.bias", "relevance.bias", "entailment.bias", "encoder.layer.1.output.dense.bias"} {
		files := randomReader(t, rewriteF32)
		all := tensorsOf(t, files[weightsFile].Data)
		for i := range all {
			if all[i].Name == spoilt {
				all[i].Bytes = append([]byte{0, 0, 0xc0, 0x7f}, all[i].Bytes[4:]...)
			}
		}
		setTensors(t, files, all)
		r := openFiles(t, files)
		if _, err := r.Read(t.Context(), "a", []llm.Excerpt{{Text: "river"}}); !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), weightsFile) {
			t.Errorf("%s: Read: %v, want ErrDamaged", spoilt, err)
		}
		if _, err := r.Entail(t.Context(), []llm.ClaimPair{{Claim: "a", Passage: llm.Excerpt{Text: "river"}}}); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("%s: Entail: %v, want ErrDamaged", spoilt, err)
		}
	}
}

// TestReaderNames checks that the name depends on the files and the encoder.
func TestReaderNames(t *testing.T) {
	plain := openRandom(t).Model()
	files := randomReader(t, rewriteF32)
	settings := tinyReaderSettings()
	settings["max_tokens"] = 60
	setReader(t, files, settings)
	reset := openFiles(t, files).Model()
	encoder, err := Open(t.Context(), func() fs.FS {
		files := tiny(t, "tiny")
		reconfigure(t, files, map[string]any{"layer_norm_eps": 1e-5})
		return files
	}(), Config{Name: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(t.Context(), randomReader(t, rewriteF32), Config{Name: "reader"}, encoder)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(plain, "reader@") || plain == reset || plain == r.Model() || reset == r.Model() {
		t.Errorf("names %s, %s with other settings, %s with another encoder", plain, reset, r.Model())
	}
	if r.Bytes() != int64(len(randomReader(t, rewriteF32)[weightsFile].Data)) {
		t.Errorf("its weights have %d bytes", r.Bytes())
	}
	known, err := OpenReader(t.Context(), randomReader(t, rewriteF32), Config{Name: "reader", Model: "reader@known"}, encoder)
	if err != nil || known.Model() != "reader@known" {
		t.Errorf("%v, %v", known, err)
	}
}

// FuzzReader checks that any files are rejected or give readings that keep the contract.
func FuzzReader(f *testing.F) {
	encoder, err := Open(f.Context(), tiny(f, "tiny"), Config{Name: "tiny"})
	if err != nil {
		f.Fatal(err)
	}
	files := randomReader(f, rewriteI8)
	f.Add(files[readerFile].Data, files[weightsFile].Data, "the river", "a court of the river")
	f.Add(files[readerFile].Data, files[weightsFile].Data, "", "\xff\xfe[SEP] e\u0301")
	f.Add(files[readerFile].Data, files[weightsFile].Data[:1000], "a", "b")
	f.Add([]byte(`{"encoder":"tiny","max_tokens":-1}`), files[weightsFile].Data, "a", "b")
	f.Fuzz(func(t *testing.T, settings, weights []byte, question, text string) {
		r, err := OpenReader(t.Context(), fstest.MapFS{readerFile: {Data: settings}, weightsFile: {Data: weights}}, Config{Name: "fuzzed"}, encoder)
		if err != nil {
			if !errors.Is(err, assay.ErrDamaged) && !errors.Is(err, assay.ErrInvalid) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("error %v is of no kind", err)
			}
			return
		}
		checkRead(t, r, question, text)
	})
}

// FuzzReaderText checks that readings of any texts keep the contract.
func FuzzReaderText(f *testing.F) {
	r := openRandom(f)
	for _, line := range mixedLines(20) {
		f.Add(line, line)
	}
	f.Add("", "\xff\xfe[SEP] e\u0301")
	f.Fuzz(func(t *testing.T, question, text string) { checkRead(t, r, question, text) })
}

func checkRead(t *testing.T, r *Reader, question, text string) {
	check := func(what string, err error) {
		var long *llm.TooLongError
		if err != nil && !errors.As(err, &long) && !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	readings, err := r.Read(t.Context(), question, []llm.Excerpt{{Heading: text, Text: text}})
	if err == nil && utf8.ValidString(text) {
		err = llmtest.CheckReading(readings[0], text)
	}
	check("Read", err)
	entailments, err := r.Entail(t.Context(), []llm.ClaimPair{{Claim: question, Passage: llm.Excerpt{Text: text}}})
	if err == nil && utf8.ValidString(text) {
		err = llmtest.CheckEntailment(entailments[0], text)
	}
	check("Entail", err)
	if ids := r.tokenizer.locate(text).ids; !strings.Contains(text, "[") && !slices.Equal(ids, r.tokenizer.encode(nil, text)) {
		t.Errorf("%q has the tokens %d", text, ids)
	}
}

// TestReadingJSON checks that a reading can be stored as JSON, which has no NaN.
func TestReadingJSON(t *testing.T) {
	readings, err := openRandom(t).Read(t.Context(), "the river", []llm.Excerpt{{Text: wordsOf(200)}, {}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(readings); err != nil {
		t.Error(err)
	}
}
