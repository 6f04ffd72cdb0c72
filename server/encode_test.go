package server

import (
	"encoding/json"
	"testing"
	"time"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	type inner struct {
		List []string          `json:"list"`
		Map  map[string]string `json:"map"`
	}
	type outer struct {
		inner2  *inner
		Inner   *inner           `json:"inner"`
		None    *inner           `json:"none"`
		Values  []inner          `json:"values"`
		ByName  map[string]inner `json:"by_name"`
		Any     any              `json:"any"`
		Raw     json.RawMessage  `json:"raw"`
		Omitted []string         `json:"omitted,omitempty"`
		Zero    []string         `json:"zero,omitzero"`
		Time    time.Time        `json:"time"`
	}
	v := outer{inner2: &inner{}, Inner: &inner{}, Values: []inner{{}, {List: []string{"a"}}}, ByName: map[string]inner{"x": {}}, Any: inner{}}
	got, err := encode(v)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"inner":{"list":[],"map":{}},"none":null,"values":[{"list":[],"map":{}},{"list":["a"],"map":{}}],"by_name":{"x":{"list":[],"map":{}}},` +
		`"any":{"list":[],"map":{}},"raw":null,"time":"0001-01-01T00:00:00Z"}`
	if string(got) != want {
		t.Errorf("encode = %s, want %s", got, want)
	}
	if v.Inner.List != nil || v.Values[0].List != nil || v.ByName["x"].List != nil {
		t.Error("encode has changed its argument")
	}
}
