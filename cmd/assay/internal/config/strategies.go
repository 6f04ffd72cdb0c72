package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/strategy"
)

// fileStrategies is the section strategies of the file: the default strategy and the strategies'
// thresholds. docs/operations.md describes each key.
type fileStrategies struct {
	Default    string                    `yaml:"default"`
	Auto       strategy.AutoSettings     `yaml:"auto"`
	Corrective strategy.Limits           `yaml:"corrective"` // for all strategies that plan; introduced by corrective
	CRAG       strategy.CRAGSettings     `yaml:"crag"`
	Self       strategy.SelfSettings     `yaml:"self"`
	Adaptive   strategy.AdaptiveSettings `yaml:"adaptive"`
	Fusion     strategy.FusionSettings   `yaml:"fusion"`
	Judge      strategy.RoundSettings    `yaml:"judge"`
	Reflect    strategy.ReflectSettings  `yaml:"reflect"`
	React      strategy.ReactSettings    `yaml:"react"` // also for agent
	Multihop   strategy.MultihopSettings `yaml:"multihop"`
	Verify     strategy.VerifySettings   `yaml:"verify"` // for all strategies
}

// strategiesKey is the name of the section.
const strategiesKey = "strategies"

// retrievalKey is the name of the section that configures the ranking of hits.
const retrievalKey = "retrieval"

// most holds the upper bounds of numbers that may exceed mostOfAll. least holds the lower bounds of
// numbers that must be larger than 1.
var (
	most  = map[string]int{"corrective.candidates": 1000, "corrective.context_tokens": 200_000, "fusion.queries": 8}
	least = map[string]int{"corrective.context_tokens": 300}
)

// mostShare holds the upper bounds of numbers that are not shares.
var mostShare = map[string]float64{"bm25.k1": assay.MaxK1}

// mostOfAll is the upper bound of all other numbers. No question is worth more, so a larger number
// is a typing error.
const mostOfAll = 100

// strategies reads the section.
func (c *Config) strategies() error {
	s := c.file.Strategies
	if s.Default != "" && !slices.Contains(strategy.Names(), s.Default) {
		hint := "the strategies are " + strings.Join(strategy.Names(), ", ")
		if near := Similar(s.Default, strategy.Names()); len(near) > 0 {
			hint = "did you mean " + near[0] + "? " + hint
		}
		return c.file.wrong([]string{strategiesKey, "default"}, hint, "unknown strategy")
	}
	if name := s.Auto.Escalate; name != "" && !slices.Contains(strategy.Escalations(), name) {
		hint := "auto can escalate to " + strings.Join(strategy.Escalations(), ", ")
		if near := Similar(name, strategy.Escalations()); len(near) > 0 {
			hint = "did you mean " + near[0] + "? " + hint
		}
		return c.file.wrong([]string{strategiesKey, "auto", "escalate"}, hint, "auto cannot escalate to %q", name)
	}
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if err := c.file.inRange(v.Field(i), strategiesKey, v.Type().Field(i).Tag.Get("yaml")); err != nil {
			return err
		}
	}
	correct, incorrect := cmp.Or(s.CRAG.Correct, strategy.Defaults().CRAG.Correct), cmp.Or(s.CRAG.Incorrect, strategy.Defaults().CRAG.Incorrect)
	if incorrect >= correct {
		return c.file.wrong([]string{strategiesKey, "crag"}, "", "incorrect (%v) must be less than correct (%v)", incorrect, correct)
	}
	if err := c.file.inRange(reflect.ValueOf(c.file.Retrieval), retrievalKey); err != nil {
		return err
	}
	if err := c.file.inRange(reflect.ValueOf(c.file.Retrieval.BM25), retrievalKey, "bm25"); err != nil {
		return err
	}
	c.Strategy, c.Limits = s.Default, s.Corrective
	c.Limits.VectorWeight = c.file.Retrieval.VectorWeight
	c.Limits.BM25 = c.file.Retrieval.BM25
	c.Limits.Unranked = c.file.Retrieval.Rerank != nil && !*c.file.Retrieval.Rerank
	c.Settings = strategy.Settings{
		Auto: s.Auto, CRAG: s.CRAG, Self: s.Self, Adaptive: s.Adaptive, Fusion: s.Fusion, Judge: s.Judge, Reflect: s.Reflect, React: s.React,
		Multihop: s.Multihop, Verify: s.Verify,
	}
	return nil
}

// inRange checks the numbers of a struct that the file sets. Counts must be at least 1, other numbers
// in (0, 1] unless mostShare has another bound.
func (f *file) inRange(v reflect.Value, path ...string) error {
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		at := append(slices.Clone(path), key)
		written := f.at(at...)
		if key == "-" || written == nil {
			continue
		}
		name := strings.Join(at[1:], ".")
		switch n := v.Field(i); {
		case n.CanFloat():
			if to := cmp.Or(mostShare[name], 1); !(n.Float() > 0 && n.Float() <= to) {
				return f.wrong(at, "", "%v is not greater than 0 and at most %v", n.Float(), to)
			}
		case n.CanInt() && written.Type() == ast.FloatType: // decoding would truncate it
			return f.wrong(at, "", "got a fraction, want a whole number")
		case n.CanInt():
			from, to := cmp.Or(least[name], 1), cmp.Or(most[name], mostOfAll)
			if n.Int() < int64(from) || n.Int() > int64(to) {
				return f.wrong(at, "", "%d is not between %d and %d", n.Int(), from, to)
			}
		}
	}
	return nil
}

// unknownIn returns a hint for an unknown key on a line: similar keys of its section, and the
// document that lists all.
func (f *file) unknownIn(line int, name string) string {
	of, docs := reflect.TypeFor[file](), "docs/models.md"
	switch f.sectionAt(line) {
	case strategiesKey:
		of, docs = reflect.TypeFor[fileStrategies](), "docs/operations.md"
	case retrievalKey:
		of, docs = reflect.TypeFor[fileRetrieval](), "docs/operations.md"
	case "server":
		of, docs = reflect.TypeFor[fileServer](), "docs/operations.md"
	}
	hint := docs + " lists all keys"
	known := slices.Compact(slices.Sorted(slices.Values(keys(of)))) // several sections have a base_url
	if near := Similar(name, known); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s? %s", strings.Join(near, ", "), hint)
	}
	return hint
}
