package indextest

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A Row is a passage or a query of a set in the form of BEIR.
type Row struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// Data returns the folder of the shared test data. It skips the test if there is none.
func Data(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("ASSAY_TESTDATA")
	if dir == "" {
		t.Skip("ASSAY_TESTDATA is not set to a folder that holds data")
	}
	return filepath.Join(dir, "data")
}

// ReadRows returns the rows of a file, a JSON object for each line.
func ReadRows(t testing.TB, path string) []Row {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []Row
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r Row
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

// ReadGrades returns the graded documents of a set by query.
func ReadGrades(t testing.TB, path string) map[string]map[string]int {
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

// NDCG10 returns nDCG@10 of a ranking of document IDs, with the grades as gains.
func NDCG10(ranking []string, grades map[string]int) float64 {
	gain := 0.0
	for i, id := range ranking[:min(10, len(ranking))] {
		gain += float64(grades[id]) / math.Log2(float64(i)+2)
	}
	var best []int
	for _, g := range grades {
		best = append(best, g)
	}
	slices.Sort(best)
	slices.Reverse(best)
	ideal := 0.0
	for i, g := range best[:min(10, len(best))] {
		ideal += float64(g) / math.Log2(float64(i)+2)
	}
	if ideal == 0 {
		return 0
	}
	return gain / ideal
}
