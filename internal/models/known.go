package models

import (
	"encoding/json"
	"slices"
	"strings"
)

// DefaultMirror is the default source of models with known names.
const DefaultMirror = "https://huggingface.co"

// A Known is a model that can be pulled by name.
type Known struct {
	Name      string   `json:"name"`
	Path      string   `json:"path"` // OWNER/REPOSITORY on a mirror
	Licence   string   `json:"licence"`
	Languages []string `json:"languages"` // ISO 639-1
	MB        int      `json:"mb"`        // approximate download size

	settings settings
}

// settings are the contents of assay.json for a model whose folder lacks them.
type settings struct {
	Pooling   string   `json:"pooling,omitempty"`
	Query     *string  `json:"query,omitempty"`
	Passage   *string  `json:"passage,omitempty"`
	Languages []string `json:"languages,omitempty"`
}

// retrievalPrompt is the query prefix of bge and arctic-embed.
const retrievalPrompt = "Represent this sentence for searching relevant passages: "

// known lists the models. Prompts and poolings are from the models' cards.
var known = []Known{
	{Name: "all-MiniLM-L6-v2", Path: "sentence-transformers/all-MiniLM-L6-v2", Licence: "Apache-2.0", MB: 91},
	{Name: "all-MiniLM-L12-v2", Path: "sentence-transformers/all-MiniLM-L12-v2", Licence: "Apache-2.0", MB: 134},
	{Name: "multi-qa-MiniLM-L6-cos-v1", Path: "sentence-transformers/multi-qa-MiniLM-L6-cos-v1", Licence: "none stated", MB: 91},
	{Name: "gte-small", Path: "thenlper/gte-small", Licence: "MIT", MB: 67, settings: settings{Pooling: "mean"}},
	{Name: "gte-base", Path: "thenlper/gte-base", Licence: "MIT", MB: 219, settings: settings{Pooling: "mean"}},
	{Name: "bge-small-en-v1.5", Path: "BAAI/bge-small-en-v1.5", Licence: "MIT", MB: 134, settings: prompts("cls", retrievalPrompt, "")},
	{Name: "bge-base-en-v1.5", Path: "BAAI/bge-base-en-v1.5", Licence: "MIT", MB: 438, settings: prompts("cls", retrievalPrompt, "")},
	{Name: "e5-small-v2", Path: "intfloat/e5-small-v2", Licence: "MIT", MB: 134, settings: prompts("mean", "query: ", "passage: ")},
	{Name: "e5-base-v2", Path: "intfloat/e5-base-v2", Licence: "MIT", MB: 438, settings: prompts("mean", "query: ", "passage: ")},
	{Name: "snowflake-arctic-embed-xs", Path: "Snowflake/snowflake-arctic-embed-xs", Licence: "Apache-2.0", MB: 91, settings: prompts("cls", retrievalPrompt, "")},
	{Name: "snowflake-arctic-embed-s", Path: "Snowflake/snowflake-arctic-embed-s", Licence: "Apache-2.0", MB: 133, settings: prompts("cls", retrievalPrompt, "")},
}

func prompts(pooling, query, passage string) settings {
	return settings{Pooling: pooling, Query: &query, Passage: &passage}
}

// AllKnown returns the models that can be pulled by name. All are English.
func AllKnown() []Known {
	all := slices.Clone(known)
	for i := range all {
		all[i].Languages = []string{"en"}
	}
	return all
}

// findKnown returns the known model of that name, ignoring case.
func findKnown(name string) (Known, bool) {
	all := AllKnown()
	i := slices.IndexFunc(all, func(k Known) bool { return strings.EqualFold(k.Name, name) })
	if i < 0 {
		return Known{}, false
	}
	return all[i], true
}

// note returns the model's assay.json.
func (k Known) note() []byte {
	s := k.settings
	s.Languages = k.Languages
	data, _ := json.MarshalIndent(s, "", "  ") // strings only: cannot fail
	return append(data, '\n')
}
