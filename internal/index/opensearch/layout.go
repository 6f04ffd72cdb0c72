package opensearch

import (
	"encoding/json"
	"fmt"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/entity"
)

// layoutVersion identifies the rows that this package writes. It grows with every change of them.
const layoutVersion = 3

// version identifies the layout of an index, its entities and its analysis.
const version = layoutVersion*1_000_000 + entity.Version*1000 + analysis.Version

// maxHits is the largest number of hits of one search.
const maxHits = 100_000

// Kinds of rows.
const (
	kindText   = "text"   // a chunk that is searched
	kindBlank  = "blank"  // a document that has no such chunk
	kindVector = "vector" // a vector of a chunk
	kindState  = "state"  // the state document
)

// fieldPrefix starts the names of the fields of vectors. No other field starts with it.
const fieldPrefix = "x"

// A row is a document of OpenSearch, other than the state document. It is never changed.
type row struct {
	Kind       string   `json:"kind"`
	Claim      int64    `json:"claim"` // number of the claim that wrote the row
	Document   string   `json:"document"`
	Version    string   `json:"version"`
	Collection string   `json:"collection"` // see keyword
	ACL        []string `json:"acl"`        // see aclTokens
	Keys       []string `json:"keys"`       // see metaTokens
	Meta       []string `json:"meta"`       // see metaTokens

	Chunk    string `json:"chunk,omitempty"`    // of texts and vectors
	Language string `json:"language,omitempty"` // of texts; see language
	Length   int64  `json:"length,omitempty"`   // of texts: number of words, by weight
	Terms    string `json:"terms,omitempty"`    // of texts: separated by blanks, as often as they count

	Impacts map[string]float64 `json:"impacts,omitempty"` // of texts: see impacts, by feature

	Entities []string `json:"entities,omitempty"` // of texts: see entityTokens
	Titles   []string `json:"titles,omitempty"`   // of texts: those of Entities that are titles

	Field string  `json:"field,omitempty"` // of vectors: the field of its model
	Owner string  `json:"owner,omitempty"` // of vectors: see owner
	Norm  float64 `json:"norm,omitempty"`  // of vectors: Euclidean
	Raw   []byte  `json:"raw,omitempty"`   // of vectors: the values as given, float32, little-endian

	unit []float32 // of vectors: the values divided by Norm; stored in the field named Field
}

// MarshalJSON writes the row with the field of its vector.
func (r row) MarshalJSON() ([]byte, error) {
	type plain row
	data, err := json.Marshal(plain(r))
	if err != nil || r.unit == nil {
		return data, err
	}
	data = append(data[:len(data)-1], fmt.Sprintf(",%q:", r.Field)...)
	unit, err := json.Marshal(r.unit)
	return append(append(data, unit...), '}'), err
}

// owner identifies the vectors of a chunk in a field.
func owner(field, chunk string) string { return field + "/" + chunk }

// settings returns the settings and mappings of a new index.
func (c *Cluster) settings() object {
	keyword := object{"type": "keyword", "norms": false}
	unsorted := object{"type": "keyword", "norms": false, "doc_values": false}
	return object{
		"settings": object{
			"number_of_shards":   c.config.Shards,
			"number_of_replicas": c.config.Replicas,
			"refresh_interval":   -1, // Flush refreshes
			"knn":                true,
			"max_result_window":  maxHits,
		},
		"mappings": object{
			"dynamic": "strict",
			"_source": object{"excludes": []string{"terms", "impacts", fieldPrefix + "*"}},
			"properties": object{
				"kind":       keyword,
				"claim":      object{"type": "long"},
				"document":   keyword,
				"version":    object{"type": "keyword", "index": false},
				"collection": keyword,
				"acl":        unsorted,
				"keys":       keyword,
				"meta":       unsorted,
				"chunk":      keyword,
				"language":   keyword,
				"length":     object{"type": "long", "index": false},
				"terms":      object{"type": "text", "analyzer": "whitespace", "index_options": "freqs", "norms": false},
				"impacts":    object{"type": "rank_features"},
				"entities":   keyword,
				"titles":     object{"type": "keyword", "index": false},
				"field":      unsorted,
				"owner":      unsorted,
				"norm":       object{"type": "double", "index": false},
				"raw":        object{"type": "binary"},
				"state":      object{"type": "object", "enabled": false},
			},
		},
	}
}

// vectorMapping returns the mapping that adds a field of vectors.
func vectorMapping(field string, dimensions int) object {
	return object{"properties": object{field: object{
		"type": "knn_vector", "dimension": dimensions,
		"method": object{
			"name": "hnsw", "engine": "lucene", "space_type": "innerproduct",
			"parameters": object{"m": 16, "ef_construction": 128},
		},
	}}}
}
