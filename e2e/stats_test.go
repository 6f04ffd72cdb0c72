package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestStatsInChromium opens the page that `assay stats --html` writes for real runs in a real
// browser without network access.
func TestStatsInChromium(t *testing.T) {
	b := startChromium(t)
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	u := user{binary: binary, home: t.TempDir()}
	dir := t.TempDir()
	docs, data, page := filepath.Join(dir, "handbook.md"), filepath.Join(dir, "data"), filepath.Join(dir, "stats.html")
	text, _ := handbookOf(40)
	if err := os.WriteFile(docs, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := u.run(t, "ingest", "--data", data, docs); r.code != 0 {
		t.Fatalf("assay ingest ends with %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for i, strategy := range []string{"static", "corrective", "react", "static"} {
		u.run(t, "ask", "--data", data, "--strategy", strategy, fmt.Sprintf("What does the plan %d cost?", i))
	}
	if r := u.run(t, "stats", "--data", data, "--html", page); r.code != 0 {
		t.Fatalf("assay stats ends with %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, window := range []struct {
		name, scheme  string
		width, height int
	}{{"stats-desktop-light", "light", 1200, 800}, {"stats-phone-dark", "dark", 360, 740}} {
		v := b.open(page, window.width, window.height, window.scheme)
		if *shots != "" {
			v.shoot(filepath.Join(*shots, window.name))
		}
		checkFits(t, v, window.name)
		v.settle()
		checkQuiet(t, v, window.name)
	}
}
