package pgvector

import (
	"bufio"
	"encoding/json"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/analysis"
)

// A row is a passage or a query of the shared test data.
type row struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// testdata returns the folder of shared test data. It skips the test if there is none.
func testdata(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("ASSAY_TESTDATA")
	if dir == "" {
		t.Skip("ASSAY_TESTDATA is not set to a folder that holds data")
	}
	return filepath.Join(dir, "data")
}

func readRows(t testing.TB, path string) []row {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []row
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// readGrades returns the graded passages of a set by query.
func readGrades(t testing.TB, path string) map[string]map[string]int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	grades := make(map[string]map[string]int)
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		cells := strings.Split(line, "\t")
		if i == 0 || len(cells) != 3 {
			continue
		}
		grade, err := strconv.Atoi(cells[2])
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if grades[cells[0]] == nil {
			grades[cells[0]] = make(map[string]int)
		}
		grades[cells[0]][cells[1]] = grade
	}
	return grades
}

// projection makes vectors of texts: the sum of a random direction for each term, weighted by its
// frequency in the text and its rarity in the corpus. Texts with the same words are near each other,
// as with a trained encoder, but it needs no model.
type projection struct {
	dimensions int
	holding    map[string]int
	texts      int
	directions map[string][]float32
}

func newProjection(dimensions int, texts []string) *projection {
	p := &projection{dimensions: dimensions, holding: make(map[string]int), texts: len(texts), directions: make(map[string][]float32)}
	for _, text := range texts {
		seen := make(map[string]bool)
		for _, t := range analysis.Tokens(text, "en") {
			if !seen[t.Term] {
				seen[t.Term] = true
				p.holding[t.Term]++
			}
		}
	}
	return p
}

func (p *projection) direction(term string) []float32 {
	if d, ok := p.directions[term]; ok {
		return d
	}
	h := fnv.New64a()
	h.Write([]byte(term))
	r := rand.New(rand.NewPCG(h.Sum64(), 7))
	d := make([]float32, p.dimensions)
	for i := range d {
		d[i] = float32(r.NormFloat64())
	}
	p.directions[term] = d
	return d
}

// vector returns the vector of a text, of unit length.
func (p *projection) vector(text string) []float32 {
	v := make([]float32, p.dimensions)
	v[0] = 1e-6 // a text without words has a direction too
	counts := make(map[string]int)
	for _, t := range analysis.Tokens(text, "en") {
		counts[t.Term]++
	}
	for term, n := range counts {
		weight := float32((1 + math.Log(float64(n))) * math.Log(1+float64(p.texts)/float64(1+p.holding[term])))
		for i, x := range p.direction(term) {
			v[i] += weight * x
		}
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
