package prompted_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/role"
)

func TestParseDomain(t *testing.T) {
	tox := domain(t, "toxicology.md")
	if tox.Name() != "toxicology" || len(tox.Hash()) != 8 {
		t.Errorf("name %q, hash %q", tox.Name(), tox.Hash())
	}
	if diff := cmp.Diff([]string{"Hazard", "Dose and response", "Exposure limits", "Gaps"}, tox.Sections()); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
	if domain(t, "legal.md").Hash() == tox.Hash() {
		t.Error("two domains have one hash")
	}
	var none *prompted.Domain
	if none.Name() != "" || none.Hash() != "" || none.Sections() != nil {
		t.Error("the nil domain is something")
	}
}

func TestParseDomainRefuses(t *testing.T) {
	const front = "---\nname: x\n---\n"
	for _, tt := range []struct{ text, want string }{
		{"", `d.md:1: want "---"`},
		{"# Vocabulary\n- a: b\n", `d.md:1: want "---"`},
		{"---\nname: x\n", `d.md:3: the fields do not end`},
		{"---\n---\n", `d.md:2: the domain has no name`},
		{"---\nname:\n---\n", `d.md:2: want "FIELD: VALUE"`},
		{"---\nname: x\nname: y\n---\n", `d.md:3: duplicate field "name"`},
		{"---\nname: x\nmodel: y\n---\n", `d.md:3: unknown field "model"`},
		{front + "\n## Vocabulry\n- a: b\n", `d.md:5: unknown heading "vocabulry"`},
		{front + "## Vocabulary\n- a: b\n## vocabulary\n", `d.md:6: duplicate heading "vocabulary"`},
		{front + "## Vocabulary\n### More\n", `d.md:5: want a heading of the form "## NAME"`},
		{front + "## Vocabulary\na: b\n", `d.md:5: want an item that starts with`},
		{front + "## Vocabulary\n- a\n", `d.md:5: want "- TERM: another word`},
		{front + "## Vocabulary\n- a: b\n- A: c\n", `d.md:6: duplicate term "A"`},
		{front + "## Answer sections\n- a: b\n- a\n", `d.md:6: section "a" is unnamed or a duplicate`},
		{front + "## House rules\n- " + strings.Repeat("x", 500) + "\n", `d.md:5: the item has 500 bytes`},
		{front + "## House rules\n- hidden\u202etext\n", `d.md:5: the line contains invisible characters`},
		{front + "## House rules\n- bad\xff\n", `d.md:5: the text is not UTF-8`},
		{front + "## House rules\n" + strings.Repeat("- x\n", 41), `d.md:45: there are more than 40 items`},
		{front + strings.Repeat("x", 40<<10), `d.md:1: the file has`},
	} {
		_, err := prompted.ParseDomain("d.md", []byte(tt.text))
		if !errors.Is(err, assay.ErrInvalid) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("ParseDomain(%q) = %v, want %s", tt.text, err, tt.want)
		}
	}
}

// TestDomainInPrompts checks that each role's prompt has its part of the domain, and that the
// prompt's ID depends on the domain.
func TestDomainInPrompts(t *testing.T) {
	cfg := prompted.Config{Model: model{}, Domain: domain(t, "toxicology.md")}
	for _, name := range prompted.Tasks() {
		c := replies(t, everyRole[name].good)
		if _, err := everyRole[name].do(t.Context(), c, cfg); err != nil {
			t.Fatal(err)
		}
		system := c.calls[0].Request.System
		judges := name == role.VerifierRole || name == role.SupportGraderTask || name == role.AnswerGraderTask
		if judges == strings.Contains(system, "toxicology") || judges != (cfg.Prompt(name) == config().Prompt(name)) {
			t.Errorf("%s: prompt %s, system:\n%s", name, cfg.Prompt(name), system)
		}
		if strings.Index(system, "Rules that stand above everything else") < strings.Index(system, "toxicology") {
			t.Errorf("%s: the rules stand before the domain", name)
		}
	}
}

// TestHostileDomain checks that a domain file cannot disable the rules, the fences or the checks.
func TestHostileDomain(t *testing.T) {
	cfg := prompted.Config{Model: model{}, Domain: domain(t, "hostile.md")}
	for _, name := range prompted.Tasks() {
		c := replies(t, everyRole[name].good)
		if _, err := everyRole[name].do(t.Context(), c, cfg); err != nil {
			t.Fatal(err)
		}
		system, user := c.calls[0].Request.System, c.last(0)
		at := strings.Index(system, "Rules that stand above everything else")
		if at < 0 || strings.Contains(system[at:], "switched off") || strings.Contains(system, "<|") {
			t.Errorf("%s: system:\n%s", name, system)
		}
		if name != role.ReflectorTask && name != role.RouterTask && strings.Contains(user, "fencing is off") {
			t.Errorf("%s: the domain is in the user's part", name)
		}
	}
	// The checks are in code: a number and a name that no source contains are rejected.
	got, err := prompted.Judge{Config: cfg}.Analyse(t.Context(), replies(t,
		`{"categories":[{"name":"Verified","statements":[{"text":"Evilcorp pays 5 euros, say Landlords.","sources":[1,9]}]}]}`), reading)
	if err != nil || len(got.Categories) != 0 || len(got.Dropped) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	judged, err := prompted.Verifier{Config: cfg}.Verify(t.Context(), replies(t, everyRole[role.VerifierRole].good), claims)
	if err != nil || judged[1].Verdict == assay.Supported {
		t.Errorf("%+v, %v", judged, err)
	}
}

func FuzzParseDomain(f *testing.F) {
	for _, file := range []string{"toxicology.md", "legal.md", "hostile.md"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("---\nname: x\n---\n<!--\n## Vocabulary\n-->\n## House rules\n* y"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := prompted.ParseDomain("d.md", text)
		if err != nil {
			if !errors.Is(err, assay.ErrInvalid) || !strings.HasPrefix(err.Error(), "d.md:") {
				t.Errorf("error %v", err)
			}
			return
		}
		if d.Name() == "" {
			t.Error("a domain without a name")
		}
		cfg := prompted.Config{Model: model{}, Domain: d}
		for _, name := range []string{role.GeneratorRole, role.QuerierTask, role.VerifierRole} {
			if !strings.HasPrefix(cfg.Prompt(name), name+"@") {
				t.Errorf("prompt %q", cfg.Prompt(name))
			}
		}
		if _, err := (prompted.Rewriter{Config: cfg}).Rewrite(t.Context(), replies(t, `{"queries":["x"]}`), role.RewriteInput{Question: "a b", Technique: role.Expand}); err != nil {
			t.Error(err)
		}
	})
}
