// Package claims measures verifiers on labelled claims.
package claims

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// A Case is a claim with its evidence and the correct verdict.
type Case struct {
	ID       string
	Claim    string
	Evidence []string // one text, or sentences
	Heading  []string // of the evidence
	Label    string   // in the file
	Verdict  assay.Verdict
	Kind     string // of the claim, or of the change to it; empty: unknown
}

// Cited returns the evidence as one passage for a verifier. Evidence in sentences has a
// paragraph for each.
func (c Case) Cited() []ground.Passage {
	text := strings.Join(c.Evidence, "\n\n")
	return []ground.Passage{{Quote: text, Context: text, Heading: c.Heading}}
}

// A Set is the cases of one file.
type Set struct {
	Name  string // of the file, without its ending
	Cases []Case
}

// maxLine is the longest line that is read: 64 MiB.
const maxLine = 64 << 20

// Read reads a file with one JSON object per line: {"id", "claim", "evidence", "label"}.
// The evidence is a text or a list of sentences. Labels are those of VerdictOf and may be numbers
// or truth values. A case without an id gets its line number. "heading", a text or a list of texts,
// and "kind" are optional. Other keys, blank lines, a byte order mark and CRLF are ignored.
//
// A malformed line is assay.ErrInvalid, and the error names it. So is a file that does not exist or
// has no claims.
func Read(file string) ([]Case, error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, not a file of claims: %w", file, assay.ErrInvalid)
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cases, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return cases, nil
}

// Parse is Read for an open file.
func Parse(r io.Reader) ([]Case, error) {
	var cases []Case
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	n := 0
	for lines.Scan() {
		n++
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		c, err := parseGrounding(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if c.ID == "" {
			c.ID = fmt.Sprintf("line %d", n)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d is longer than %d bytes: %w", n+1, maxLine, assay.ErrInvalid)
	} else if err != nil {
		return nil, err
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("contains no claims: %w", assay.ErrInvalid)
	}
	return cases, nil
}

// parseGrounding reads a line.
func parseGrounding(line []byte) (Case, error) {
	var raw struct {
		ID       json.RawMessage `json:"id"`
		Claim    *string         `json:"claim"`
		Evidence json.RawMessage `json:"evidence"`
		Label    json.RawMessage `json:"label"`
		Heading  json.RawMessage `json:"heading"`
		Kind     json.RawMessage `json:"kind"`
	}
	if line[0] == '[' {
		return Case{}, fmt.Errorf("is part of a JSON array, want one JSON object per line (convert with jq -c '.[]'): %w", assay.ErrInvalid)
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return Case{}, fmt.Errorf("%s is a JSON %s, want %s: %w", cmp.Or(wrong.Field, "it"), wrong.Value, wanted(wrong.Field), assay.ErrInvalid)
		}
		return Case{}, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	if raw.Claim == nil || strings.TrimSpace(*raw.Claim) == "" {
		return Case{}, fmt.Errorf("has no claim: %w", assay.ErrInvalid)
	}
	c := Case{ID: scalar(raw.ID), Claim: *raw.Claim}
	if len(raw.Evidence) == 0 || string(raw.Evidence) == "null" {
		return c, fmt.Errorf("has no evidence: %w", assay.ErrInvalid)
	}
	var text string
	if json.Unmarshal(raw.Evidence, &text) == nil {
		c.Evidence = []string{text}
	} else if err := json.Unmarshal(raw.Evidence, &c.Evidence); err != nil {
		return c, fmt.Errorf("evidence is neither a text nor a list of texts: %w", assay.ErrInvalid)
	}
	label := scalar(raw.Label)
	if label == "" {
		return c, fmt.Errorf("has no label: %w", assay.ErrInvalid)
	}
	c.Label, c.Verdict = label, VerdictOf(label)
	c.Kind = scalar(raw.Kind)
	if heading := scalar(raw.Heading); heading != "" {
		c.Heading = []string{heading}
	} else {
		_ = json.Unmarshal(raw.Heading, &c.Heading) // anything else is not a heading
	}
	return c, nil
}

// wanted returns the type that a key of a claim must have.
func wanted(key string) string {
	if key == "" {
		return "an object"
	}
	return "a text"
}

// scalar returns a JSON text, number or truth value as text, and "" for other values.
func scalar(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return strings.TrimSpace(text)
	}
	s := strings.TrimSpace(string(raw))
	if s == "null" || strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		return ""
	}
	return s
}

// VerdictOf returns the verdict for a label of a common set. Case is ignored, and words may be
// separated by spaces, "-" or "_". Supported are: supported, support(s), entailment, entailed,
// entails, attributable, consistent, yes, true and 1. Contradicted are: contradiction,
// contradict(s), contradicted, contradictory, refute(s), refuted and refutation. All others are
// Unsupported, such as partially_supported, neutral and NOT_ENOUGH_INFO.
func VerdictOf(label string) assay.Verdict {
	verdict, _ := verdictOf(label)
	return verdict
}

// UnknownLabels counts the labels that VerdictOf does not know. It maps them to Unsupported, which
// may be wrong if a label is misspelt or comes from another set.
func UnknownLabels(cases []Case) map[string]int {
	unknown := map[string]int{}
	for _, c := range cases {
		if _, known := verdictOf(c.Label); !known {
			unknown[c.Label]++
		}
	}
	return unknown
}

// verdictOf is VerdictOf. known is false for labels that no common set has.
func verdictOf(label string) (_ assay.Verdict, known bool) {
	word := strings.ToLower(strings.Join(strings.FieldsFunc(label, func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), "_"))
	if x, err := strconv.ParseFloat(word, 64); err == nil && x == math.Trunc(x) {
		word = strconv.FormatFloat(x, 'f', -1, 64) // 1.0 is 1
	}
	switch word {
	case "supported", "support", "supports", "fully_supported", "entailment", "entailed", "entails", "entail", "attributable", "consistent", "yes", "true", "1":
		return assay.Supported, true
	case "contradiction", "contradict", "contradicts", "contradicted", "contradictory", "refute", "refutes", "refuted", "refutation":
		return assay.Contradicted, true
	case "unsupported", "not_supported", "partially_supported", "partial", "partially", "neutral", "not_enough_info", "not_enough_information", "nei", "inconsistent",
		"unattributable", "not_attributable", "not_entailment", "not_entailed", "non_entailment", "extrapolatory", "unverifiable", "no_evidence", "no", "false", "0":
		return assay.Unsupported, true
	}
	return assay.Unsupported, false
}

// Judge runs a verifier on claims, one after the other. It stops at the first error of
// the verifier, and at a score outside [0, 1].
func Judge(ctx context.Context, v ground.Verifier, cases []Case, progress func(done, all int)) ([]Judged, error) {
	judged := make([]Judged, len(cases))
	for i, c := range cases {
		j, err := v.Verify(ctx, c.Claim, c.Cited())
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", c.ID, err)
		}
		if !(j.Score >= 0 && j.Score <= 1) {
			return nil, fmt.Errorf("claim %s: the verifier's score %v is outside [0, 1]", c.ID, j.Score)
		}
		judged[i] = Judged{ID: c.ID, Gold: c.Verdict, Verdict: j.Verdict, Score: j.Score, Reason: j.Reason, Refused: j.Refused, Kind: c.Kind, Spans: j.Spans}
		if progress != nil {
			progress(i+1, len(cases))
		}
	}
	return judged, nil
}
