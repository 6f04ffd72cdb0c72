package local

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
)

func TestKindOfQuestion(t *testing.T) {
	for question, want := range map[string]kind{
		"Who founded the company?":                        kindWho,
		"When was the bridge built?":                      kindWhen,
		"In what year did the war end?":                   kindWhen,
		"How many tackles did Luke Kuechly register?":     kindNumber,
		"Where was Marie Curie born?":                     kindWhere,
		"In which city is the office?":                    kindWhere,
		"Why does the cache grow?":                        kindWhy,
		"What is the reason for the limit?":               kindWhy,
		"How do I set a timeout?":                         kindHow,
		"Which team won in 1920?":                         kindName,
		"What is a data race?":                            kindDefine,
		"What material are the walls of the fort made of": kindWhat,
		"Is the plan free?":                               kindYesNo,
		"retention of invoices":                           kindOther,
	} {
		if got := kindOfQuestion(question); got != want {
			t.Errorf("kindOfQuestion(%q) = %d, want %d", question, got, want)
		}
	}
}

func TestOffered(t *testing.T) {
	for _, tt := range []struct {
		question, text string
		has, known     bool
	}{
		{"When was the bridge built?", "The bridge was built in 1932.", true, true},
		{"When was the bridge of 1932 closed?", "The bridge of 1932 was closed.", false, true},
		{"How many people work there?", "Forty-two people work there, and 17 visit.", true, true},
		{"How many people work there?", "Many people work there.", false, true},
		{"Who directed Heron?", "Heron was directed by Ann Lee.", true, true},
		{"Who directed Heron?", "Heron was well received.", false, true},
		{"Where was Marie Curie born?", "Marie Curie was born in Warsaw.", true, true},
		{"Where was Marie Curie born?", "Marie Curie won two prizes.", false, true},
		{"Why does it fail?", "It fails because the disk is full.", true, true},
		{"How do I stop it?", "Press the button.", false, false},
	} {
		q := read(tt.question, nil)
		has, known := kindOfQuestion(tt.question).offered(tt.text, q, stems("", tt.question))
		if has != tt.has || known != tt.known {
			t.Errorf("%q offered by %q: %v, %v, want %v, %v", tt.question, tt.text, has, known, tt.has, tt.known)
		}
	}
}

func TestChunksOf(t *testing.T) {
	weight := func(chunks, holding float64) float64 {
		const background = 100
		idf := func(n, h float64) float64 { return math.Log(1 + (n-h+0.5)/(h+0.5)) }
		return idf(chunks+background, holding+1) / idf(chunks+background, 1)
	}
	for _, chunks := range []float64{40, 120, 5000, 200000} {
		got := chunksOf([]assay.Term{{Chunks: 0, Weight: 1}, {Chunks: 7, Weight: weight(chunks, 7)}})
		if math.Abs(got-chunks) > chunks/50 {
			t.Errorf("chunksOf = %.1f of %v", got, chunks)
		}
	}
	if got := chunksOf(nil); got < 1 {
		t.Errorf("chunksOf(nil) = %v", got)
	}
}

// wordEncoder gives each word a vector of its own letters, so that equal words are alike
// and others hardly.
type wordEncoder struct{ err error }

func (e wordEncoder) Encode(_ context.Context, texts []string) ([][]ground.Token, error) {
	if e.err != nil {
		return nil, e.err
	}
	out := make([][]ground.Token, len(texts))
	for i, text := range texts {
		at := 0
		for _, word := range strings.Fields(text) {
			start := at + strings.Index(text[at:], word)
			at = start + len(word)
			v := make([]float32, 64)
			for k, c := range []byte(strings.ToLower(strings.Trim(word, ".,?"))) {
				v[(int(c)*7+k*13)%64]++
			}
			out[i] = append(out[i], ground.Token{Start: start, End: at, Vector: unitLength(v)})
		}
	}
	return out, nil
}

func heldInput(question string, passages ...string) role.GradeInput {
	in := role.GradeInput{Question: question, Floor: 0.5, Held: DefaultHeld}
	for i, text := range passages {
		bm25, vector := 9.0/float64(i+1), 0.9-0.05*float64(i)
		in.Hits = append(in.Hits, assay.Hit{
			Chunk: assay.Chunk{ID: string(rune('a' + i)), Document: "d", End: len(text)}, Text: text,
			Scores: assay.Scores{BM25: &bm25, Vector: &vector, Relevance: 0.9 / float64(i+1)},
		})
	}
	in.Terms = read(question, nil).terms
	for i := range in.Terms {
		in.Terms[i].Chunks = 1 // else no document speaks of it
	}
	return in
}

func TestHeldFeatures(t *testing.T) {
	in := heldInput("Where was Marie Curie born?",
		"Marie Curie was born in Warsaw. She studied in Paris.", "Pierre Curie was a physicist.", "Warsaw lies on the Vistula.")
	for _, encoder := range []ground.Encoder{nil, wordEncoder{}} {
		names := HeldFeatureNames(encoder != nil)
		a, err := HeldFeatures(t.Context(), encoder, in)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := HeldFeatures(t.Context(), encoder, in)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("the same input gives other features: %s", diff)
		}
		if len(a) != len(names) {
			t.Fatalf("%d features for %d names", len(a), len(names))
		}
		got := map[string]float64{}
		for i, name := range names {
			if math.IsNaN(a[i]) || math.IsInf(a[i], 0) {
				t.Errorf("%s is %v", name, a[i])
			}
			got[name] = a[i]
		}
		if got["passage"] != 1 || got["offers"] != 1 || got["lacks"] != 0 || got["where"] != 1 || got["agree"] != 1 {
			t.Errorf("features %v", got)
		}
		if encoder != nil && (got["alike"] < 0.99) {
			t.Errorf("alike is %v", got["alike"])
		}
	}
}

// TestHeldFeaturesOfLittle reads what has next to nothing to be read.
func TestHeldFeaturesOfLittle(t *testing.T) {
	long := strings.Repeat("word ", 2000)
	for _, in := range []role.GradeInput{
		heldInput("?", "Something."),
		heldInput("Who?", ""),
		heldInput("Was heißt ünïcode?", strings.Repeat("ü", 3000)),
		heldInput("What is said here?", long, long+"."),
	} {
		for _, encoder := range []ground.Encoder{nil, wordEncoder{}} {
			features, err := HeldFeatures(t.Context(), encoder, in)
			if err != nil || slices.ContainsFunc(features, math.IsNaN) {
				t.Errorf("HeldFeatures(%q) = %v, %v", in.Question, features, err)
			}
		}
	}
}

func TestGradeByHeld(t *testing.T) {
	in := heldInput("Where was Marie Curie born?", "Marie Curie was born in Warsaw.", "Pierre Curie was a physicist.")
	for _, tt := range []struct {
		name    string
		encoder ground.Encoder
		held    float64
		want    assay.GradeVerdict
		notes   int
	}{
		{"everything passes", nil, 1e-6, assay.Sufficient, 0},
		{"nothing passes", nil, 1, assay.Insufficient, 0},
		{"by vectors", wordEncoder{}, 1e-6, assay.Sufficient, 0},
		{"the encoder fails", wordEncoder{errors.New("no memory")}, 1e-6, assay.Sufficient, 1},
	} {
		in.Held = tt.held
		g, err := Grader{Encoder: tt.encoder}.Grade(t.Context(), nil, in)
		if err != nil || g.Verdict != tt.want || g.Held == nil || len(g.Notes) != tt.notes {
			t.Errorf("%s: %+v, %v", tt.name, g, err)
		}
		if (len(g.Relevant) == 0) != (tt.want == assay.Insufficient) {
			t.Errorf("%s: %s, and relevant is %v", tt.name, g.Verdict, g.Relevant)
		}
		if tt.want == assay.Insufficient && !strings.Contains(g.Reason, "1.00 is needed") {
			t.Errorf("%s: reason %q", tt.name, g.Reason)
		}
	}
	in.Held = 0
	if g, _ := (Grader{}).Grade(t.Context(), nil, in); g.Held != nil {
		t.Errorf("a grader that was not asked said %v", *g.Held)
	}
}

// TestNeeded holds what is needed to odds worked by hand: 0.65 is 1.857 to one.
func TestNeeded(t *testing.T) {
	for _, tt := range []struct {
		name     string
		encoder  ground.Encoder
		tried    int
		verdict  assay.GradeVerdict
		relevant int
		want     float64
	}{
		{"nothing suffices", wordEncoder{}, 0, assay.Insufficient, 0, 0.65},
		{"one passage", wordEncoder{}, 0, assay.Sufficient, 1, 0.535},
		{"several passages", wordEncoder{}, 0, assay.Sufficient, 2, 0.182},
		{"several that do not suffice", wordEncoder{}, 0, assay.Partly, 2, 0.65},
		{"a second search", wordEncoder{}, 1, assay.Sufficient, 2, 0.848},
		{"a third search", wordEncoder{}, 2, assay.Sufficient, 2, 0.944},
		{"one by words", nil, 0, assay.Sufficient, 1, 0.788},
		{"several by words", nil, 0, assay.Sufficient, 3, 0.380},
	} {
		in := heldInput("Where was Marie Curie born?", "Marie Curie was born in Warsaw.", "She studied in Paris.")
		in.Held, in.Tried = 0.65, make([]string, tt.tried)
		if got := (Grader{Encoder: tt.encoder}).needed(in, tt.verdict, tt.relevant); math.Abs(got-tt.want) > 0.001 {
			t.Errorf("%s: %.3f is needed, want %.3f", tt.name, got, tt.want)
		}
	}
}

func TestDefaultHeldModel(t *testing.T) {
	m := defaultHeld()
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	if m.Words.Slope <= 0 || m.Vectors.Slope <= 0 {
		t.Errorf("slopes %v and %v: more would be less", m.Words.Slope, m.Vectors.Slope)
	}
}
