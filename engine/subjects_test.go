package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/strategy"
)

// contracts opens a data directory with some of the contracts.
func contracts(t *testing.T, names ...string) *Engine {
	t.Helper()
	docs := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", "contracts", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		docs["docs/"+name+".md"] = string(text)
	}
	e := collectionsIn(t, openConfig(t, Config{Dir: t.TempDir(), NoBackground: true, Encoders: embeddedEncoder{}, Reader: embedded.OpenReader}), docs)
	if _, err := e.Embed(t.Context(), nil); err != nil { // how many vectors a search makes depends on the machine
		t.Fatal(err)
	}
	return e
}

// TestSubjects checks that a question that several contracts fit is answered for each of them, under
// its title, and that a question that names one is answered for that one.
func TestSubjects(t *testing.T) {
	t.Parallel()
	const (
		north = "Supply agreement with Northwind Components"
		south = "Supply agreement with Southgate Metals"
		east  = "Framework contract with Eastfield Logistics"
		lease = "Lease of the office at Hafenstrasse 12"
		of    = "Service contract with Brightwater Cleaning, edition "
	)
	end := map[string]string{
		north: "31 March 2027", south: "30 June 2027", east: "31 December 2026", lease: "31 December 2031", of + "2023": "31 August 2025", of + "2025": "31 August 2028",
	}
	const question = "When does the contract end?"
	for _, tt := range []struct {
		files    []string
		question string
		want     []string // titles; one: that contract alone
		status   assay.Status
	}{
		{[]string{"supplier-north", "supplier-south"}, question, []string{north, south}, assay.Answered},
		{[]string{"supplier-north", "supplier-south", "supplier-east"}, question, []string{north, east, south}, assay.Answered},
		{[]string{"supplier-north", "office-lease"}, question, []string{north, lease}, assay.Answered},
		{[]string{"services-2023", "services-2025"}, question, []string{of + "2025", of + "2023"}, assay.Conflicting},
		{[]string{"supplier-north", "supplier-south", "supplier-east"}, "When does the Northwind contract end?", []string{north}, assay.Answered},
		{[]string{"supplier-north", "supplier-south", "supplier-east"}, "When does the contract with Southgate end?", []string{south}, assay.Answered},
		{[]string{"supplier-north", "office-lease"}, "When does the lease end?", []string{lease}, assay.Answered},
	} {
		e := contracts(t, tt.files...)
		names := []string{"auto"}
		if len(tt.files) == 2 && len(tt.want) == 2 && !testing.Short() {
			names = slices.DeleteFunc(strategy.Names(), func(n string) bool { return n == "managed" })
		}
		for _, name := range names {
			a := asked(t, e, Request{Question: tt.question, Strategy: name, Budget: assay.Budget{Wall: 10 * time.Minute}})
			if len(tt.want) == 1 {
				if len(a.Readings) > 0 || a.Status != tt.status || !strings.Contains(a.Text, end[tt.want[0]]) {
					t.Errorf("%q, %s: %s: %q, readings %q", tt.question, name, a.Status, a.Text, a.Readings)
				}
				continue
			}
			if a.AskBack != "" && a.Status == assay.Incomplete && namesAll(a.Readings, tt.want) {
				continue
			}
			if a.Status != tt.status || !namesAll(a.Readings, tt.want) {
				t.Errorf("%v, %s: %s: %q, readings %q, want %q", tt.files, name, a.Status, a.Text, a.Readings, tt.want)
				continue
			}
			for _, title := range tt.want {
				_, part, _ := strings.Cut(a.Text, "## "+title+"\n")
				if part, _, _ = strings.Cut(part, "## "); !strings.Contains(part, end[title]) {
					t.Errorf("%v, %s: under %s: %q, want %s", tt.files, name, title, part, end[title])
				}
			}
			replays(t, e, a.Run)
		}
	}
}

// namesAll reports whether two lists have the same names.
func namesAll(got, want []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}
