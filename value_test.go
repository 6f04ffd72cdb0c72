package assay_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/assay-rag/assay"
)

func TestValue(t *testing.T) {
	east := time.FixedZone("east", 2*60*60)
	at := time.Date(2024, 5, 6, 7, 8, 9, 10, time.UTC)
	tests := []struct {
		value      assay.Value
		text, json string
	}{
		{assay.StringValue(""), "", `""`},
		{assay.StringValue("a \"b\""), "a \"b\"", `"a \"b\""`},
		{assay.NumberValue(0), "0", `0`},
		{assay.NumberValue(-1.5), "-1.5", `-1.5`},
		{assay.NumberValue(1e21), "1000000000000000000000", `1e+21`},
		{assay.BooleanValue(false), "false", `false`},
		{assay.TimeValue(at.In(east)), "2024-05-06T07:08:09.00000001Z", `{"time":"2024-05-06T07:08:09.00000001Z"}`},
		{assay.ListValue(), "", `[]`},
		{assay.ListValue("a", "b, c"), "a, b, c", `["a","b, c"]`},
	}
	for i, tt := range tests {
		if got := tt.value.Text(); got != tt.text {
			t.Errorf("Text of %+v = %q, want %q", tt.value, got, tt.text)
		}
		data, err := json.Marshal(tt.value)
		if err != nil || string(data) != tt.json {
			t.Errorf("JSON of %+v = %s, %v; want %s", tt.value, data, err, tt.json)
		}
		var back assay.Value
		if err := json.Unmarshal(data, &back); err != nil || !back.Equal(tt.value) {
			t.Errorf("%s reads back as %+v, %v; want %+v", data, back, err, tt.value)
		}
		for j, other := range tests {
			if tt.value.Equal(other.value) != (i == j) {
				t.Errorf("%+v equal to %+v: %v", tt.value, other.value, i != j)
			}
		}
	}
}

func TestValueErrors(t *testing.T) {
	if data, err := json.Marshal(assay.Value{}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a value without a kind is %s, %v; want ErrInvalid", data, err)
	}
	for _, data := range []string{
		`null`, `{}`, `{"time": 3}`, `{"time": "yesterday"}`, `{"time": "2024-05-06T07:08:09Z", "zone": "x"}`, `[1]`, `["a", null]`, `[["a"]]`,
	} {
		v := assay.StringValue("before")
		if err := v.UnmarshalJSON([]byte(data)); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("UnmarshalJSON(%s) = %+v, %v; want ErrInvalid", data, v, err)
		}
		if !v.Equal(assay.StringValue("before")) {
			t.Errorf("UnmarshalJSON(%s) changed the value to %+v", data, v)
		}
	}
}

func FuzzValue(f *testing.F) {
	for _, s := range []string{`"a"`, `1e400`, `true`, `["a"]`, `{"time":"2024-05-06T07:08:09.5+02:00"}`, `null`, `{"time":"9999-12-31T23:59:59-23:59"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v, again assay.Value
		if v.UnmarshalJSON(data) != nil {
			return
		}
		out, err := v.MarshalJSON()
		if err != nil {
			t.Fatalf("%s gives %+v, which has no JSON: %v", data, v, err)
		}
		if err := again.UnmarshalJSON(out); err != nil || !again.Equal(v) {
			t.Errorf("%s gives %+v, written %s, read %+v, %v", data, v, out, again, err)
		}
	})
}

func TestUsageAdd(t *testing.T) {
	a := assay.Usage{Calls: 1, InputTokens: 2, OutputTokens: 3, CostMicros: 4, Searches: 5}
	want := assay.Usage{Calls: 2, InputTokens: 4, OutputTokens: 6, CostMicros: 8, Searches: 10}
	if got := a.Add(a); got != want {
		t.Errorf("Add = %+v, want %+v", got, want)
	}
}
