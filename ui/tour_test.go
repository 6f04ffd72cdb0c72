package ui

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay/internal/browsertest"
)

// TestChromiumTour takes the pictures of docs/tour.md from the server that ASSAY_TOUR names. scripts/tour
// starts it.
func TestChromiumTour(t *testing.T) {
	server := os.Getenv("ASSAY_TOUR")
	if server == "" {
		t.Skip("ASSAY_TOUR is not set: see scripts/tour")
	}
	p := browsertest.Start(t).Page(t, browsertest.Options{Width: 1000, Height: 640})
	save := func(name string) {
		t.Helper()
		p.Save(filepath.Join("..", "docs", "images", "tour-"+name+".png"), browsertest.Times)
	}
	ask := func(question string) {
		t.Helper()
		p.Go(server + "/")
		p.Fill("#question", question)
		p.Press("Enter")
		p.Wait(".answer-columns")
	}
	p.Go(server + "/")
	save("ask")
	ask("In which order are deferred functions executed?")
	save("answer")
	p.Click("details.fold > summary")
	save("steps")
	p.Go(p.URL() + "/trace")
	p.Wait("h1")
	save("trace")
	ask("How often are the offices in Ulm cleaned?")
	save("conflict")
	ask("Who maintains the Go playground servers?")
	save("not-found")
	p.Go(server + "/documents")
	p.Wait("h1")
	save("documents")
}
