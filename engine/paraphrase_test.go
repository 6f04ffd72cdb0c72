package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/role"
)

// paraphrased holds six documents and questions on them. Each question has a fair answer, which
// paraphrases the documents, and a false one.
var paraphrased = struct {
	documents map[string]string
	answers   []struct{ question, fair, false string }
}{
	documents: map[string]string{
		"leaflet.md": "# Dolorex leaflet\n\n## How to take it\n\nAdults take 400 mg every six hours. Children over six take 200 mg every eight hours. Do not take Dolorex for longer than 10 days. Store the tablets below 25 °C.\n",
		"lease.md":   "# Lease of flat 4\n\n## Money\n\nThe tenant pays the landlord a deposit of 900 euros before moving in. The landlord returns the deposit within 28 days of the end of the lease. The rent is due on the third working day of the month.\n\n## Notice\n\nThe tenant may give notice of three months at any time. Subletting needs the written consent of the landlord.\n",
		"trial.md":   "# The Meridian trial\n\n## Results\n\nOf 40 patients who were given norvaline, 26 improved. Of 40 patients who were given the placebo, 12 improved. Nausea was reported by 5 patients of the norvaline group and by 2 of the placebo group. The trial was led by Hanna Lindqvist in Turku.\n",
		"pump.md":    "# Pump P7 manual\n\n## Opening the housing\n\nDisconnect the mains before you open the housing. Loosen the four screws, then lift the cover. The filter is cleaned every two weeks. The pump must not run dry for more than 30 seconds.\n",
		"library.md": "# Library rules\n\n## Loans\n\nStudents may borrow up to eight books for four weeks. Staff may borrow up to twenty books for a year. Reference works are not lent. Whoever loses a book replaces it or pays its price.\n",
		"backups.md": "# Backups\n\n## Schedule\n\nFull backups are made on Sundays, and incremental backups every night. Backups are kept for 90 days. Only the platform team can restore a backup. A restore is tested once a quarter.\n",
	},
	answers: []struct{ question, fair, false string }{
		{"How much Dolorex do adults take?", "For adults the dose of Dolorex is 400 mg every six hours.", "Adults and children take 200 mg of Dolorex."},
		{"How often do children over six take Dolorex?", "Children older than six take it every eight hours, 200 mg each time.", "Children over six take 200 mg every six hours."},
		{"For how long may Dolorex be taken?", "Dolorex is to be taken for 10 days at most.", "Dolorex may be taken for longer than 10 days."},
		{"At what temperature are Dolorex tablets stored?", "The tablets have to be kept at less than 25 °C.", "The tablets are stored above 25 °C."},
		{"Who pays the deposit of the flat?", "A deposit of 900 euros is paid to the landlord by the tenant before moving in.", "The landlord pays the tenant a deposit of 900 euros."},
		{"When is the deposit returned?", "After the lease ends, the tenant gets the deposit back from the landlord within 28 days.", "The landlord returns the deposit more than 28 days after the end of the lease."},
		{"When is the rent due?", "The rent has to be paid by the third working day of each month.", "The rent is due on the third working day of the year."},
		{"Is subletting allowed?", "Subletting is possible only if the landlord consents in writing.", "Subletting needs no consent of the landlord."},
		{"How many patients improved with norvaline?", "With norvaline, 26 of the 40 patients got better.", "Of 40 patients who were given norvaline, 12 improved."},
		{"How many patients improved with the placebo?", "In the placebo group 12 out of 40 patients improved.", "Of 40 patients who were given the placebo, 26 improved."},
		{"Who led the Meridian trial?", "Hanna Lindqvist was the leader of the trial, which took place in Turku.", "The trial was led by Hanna Turku in Lindqvist."},
		{"How many patients reported nausea?", "Nausea occurred in 5 patients on norvaline and in 2 on the placebo.", "Nausea was reported by 2 patients of the norvaline group."},
		{"What has to be done before the housing of the pump is opened?", "The mains must be disconnected first, and only then is the housing opened.", "Before disconnecting the mains, open the housing."},
		{"How often is the filter of the pump cleaned?", "The pump's filter needs cleaning every two weeks.", "The filter is cleaned every two months."},
		{"For how long may the pump run dry?", "Running dry is allowed for 30 seconds at most.", "The pump must run dry for more than 30 seconds."},
		{"How many books may students borrow?", "A student can have up to eight books on loan, for four weeks.", "Students may borrow up to twenty books for a year."},
		{"Are reference works lent?", "Reference works cannot be borrowed.", "All works, reference works too, are lent."},
		{"When are full backups made?", "A full backup is made every Sunday.", "Full backups are made every night."},
		{"Who can restore a backup?", "Restoring a backup is reserved for the platform team.", "Everybody can restore a backup."},
		{"For how long are backups kept?", "Backups are retained for 90 days.", "Backups are deleted on Sundays."},
	},
}

// openParaphrased opens a data directory with the documents.
func openParaphrased(t *testing.T, reader func() (llm.Reader, error)) *Engine {
	t.Helper()
	dir := t.TempDir()
	for name, text := range paraphrased.documents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := openConfig(t, Config{Dir: t.TempDir(), NoBackground: true, NoCache: true, Reader: reader})
	ingestPaths(t, e, dir)
	return e
}

// saying returns models that find everything relevant and answer each question with the given
// statement, and a verifier that judges it.
func saying(statement string, verdict func(claim string) assay.Verdict) Models {
	by := clerks(func(form string, p seen, reply map[string]any, calls []llm.ToolCall) []llm.ToolCall {
		switch form {
		case "grade":
			reply["relevant_chunks"], reply["verdict"], reply["missing"] = p.numbers(), "sufficient", []string{}
		case "answer":
			reply["statements"] = []any{map[string]any{"text": statement, "sources": p.numbers(), "item": false, "cells": []string{}, "section": ""}}
		case "verdicts":
			for i, v := range reply["verdicts"].([]any) {
				v := v.(map[string]any)
				v["verdict"], v["score"] = string(verdict(p.others["claim"][i])), 0.95
			}
		}
		return calls
	})
	return Models{Roles: map[string]llm.Model{
		role.GraderRole: by[role.GraderRole], role.GeneratorRole: by[role.GeneratorRole], role.VerifierRole: by[role.VerifierRole],
	}}
}

// shows reports whether an answer shows a statement verbatim.
func shows(a assay.Answer, statement string) bool {
	return slices.ContainsFunc(a.Claims, func(c assay.Claim) bool { return a.Text[c.Start:c.End] == statement })
}

// TestParaphrasesThroughWholeRuns checks that fair paraphrases are shown and false statements are
// not, if the verifier model is honest. For a verifier that supports everything, it logs how many
// false statements the reader and the hard checks stop.
func TestParaphrasesThroughWholeRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it asks 120 questions")
	}
	verifiers := map[string]func(fair string) func(string) assay.Verdict{
		"honest": func(fair string) func(string) assay.Verdict {
			return func(claim string) assay.Verdict {
				if claim == fair {
					return assay.Supported
				}
				return assay.Contradicted
			}
		},
		"obeying": func(string) func(string) assay.Verdict {
			return func(string) assay.Verdict { return assay.Supported }
		},
	}
	for _, by := range []struct {
		name   string
		reader func() (llm.Reader, error)
	}{{"the reader", embedded.OpenReader}, {"the hard checks alone", nil}} {
		e := openParaphrased(t, by.reader)
		for name, verdict := range verifiers {
			if name == "obeying" && by.reader == nil {
				continue // no requirement for this combination
			}
			fair, false_ := 0, 0
			var lost, passed []string
			for _, x := range paraphrased.answers {
				for _, statement := range []string{x.fair, x.false} {
					e.config.Models = saying(statement, verdict(x.fair))
					a := asked(t, e, Request{Question: x.question, Strategy: "static", Budget: assay.Budget{Wall: 10 * time.Minute}})
					switch shown := shows(a, statement); {
					case shown && statement == x.fair:
						fair++
					case shown:
						false_++
						passed = append(passed, statement)
					case statement == x.fair:
						lost = append(lost, fmt.Sprintf("%s (%s %s)", statement, a.Status, a.Reason))
					}
					if strings.Contains(a.Text, statement) && !shows(a, statement) {
						t.Errorf("%q is shown and is no claim: %q", statement, a.Text)
					}
				}
			}
			n := len(paraphrased.answers)
			t.Logf("verifier %s, %s: %d of %d fair shown, %d of %d false caught\n lost: %s\n passed: %s", name, by.name, fair, n, n-false_, n,
				strings.Join(lost, "; "), strings.Join(passed, "; "))
			if name == "honest" && false_ > 0 {
				t.Errorf("an honest verifier lets %d false statements through", false_)
			}
			if name == "honest" && by.reader != nil && fair < n*7/10 {
				t.Errorf("of %d fair statements only %d are shown", n, fair)
			}
		}
	}
}
