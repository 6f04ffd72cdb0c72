package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestCanonical(t *testing.T) {
	tests := []struct {
		in   any
		want string
	}{
		{nil, `null`},
		{json.RawMessage(nil), `null`},
		{true, `true`},
		{"a<b>&\u2028é😀\x7f", "\"a<b>&\u2028é😀\x7f\""},
		{"\"\\/\b\f\n\r\t\x00\x1f", `"\"\\/\b\f\n\r\t\u0000\u001f"`},
		{"wrong \xff\xfe byte", "\"wrong \uFFFD\uFFFD byte\""},
		{map[string]int{"b": 1, "a": 2, "": 3}, `{"":3,"a":2,"b":1}`},
		{struct {
			Z int
			A []string
			M struct{ B, A bool }
		}{}, `{"A":null,"M":{"A":false,"B":false},"Z":0}`},
		{json.RawMessage(" { \"b\" : [ ] , \"a\" : { } } \n"), `{"a":{},"b":[]}`},
		{json.RawMessage(`{"\u0001":1,"!":2,"[":3,"\\":4,"]":5}`), `{"\u0001":1,"!":2,"[":3,"\\":4,"]":5}`},
		{json.RawMessage(`{"]":5,"\\":4,"!":2,"[":3,"\u0001":1}`), `{"\u0001":1,"!":2,"[":3,"\\":4,"]":5}`},
		{json.RawMessage(`"\u0041\/\ud83d\ude00\ud800x\udc00\u00E9"`), "\"A/😀\uFFFDx\uFFFDé\""},
		{json.RawMessage(`{"$value":1}`), `{"$value":1}`},

		{uint64(math.MaxUint64), `18446744073709551615`},
		{int64(math.MinInt64), `-9223372036854775808`},
		{0.1, `0.1`},
		{1e21, `1e+21`},
		{1e20, `100000000000000000000`},
		{1e-6, `0.000001`},
		{1e-7, `1e-7`},
		{math.Copysign(0, -1), `0`},
		{math.MaxFloat64, `1.7976931348623157e+308`},
		{math.SmallestNonzeroFloat64, `5e-324`},
		{float32(0.1), `0.1`},
		{json.Number("1.50"), `1.5`},
		{json.Number("1E3"), `1000`},
		{json.Number("-0.0e5"), `0`},
		{json.Number("100e-4"), `0.01`},
		{json.Number("12.5e-9"), `1.25e-8`},
		{json.Number("0.1234567890123456789012345"), `0.1234567890123456789012345`},
		{json.Number("123456789012345678901234567890"), `1.2345678901234567890123456789e+29`},
		{json.Number("1e400"), `1e+400`},
		{json.Number("123456.789e3"), `123456789`},
	}
	for _, tt := range tests {
		got, err := Canonical(tt.in)
		if err != nil || string(got) != tt.want {
			t.Errorf("Canonical(%#v) = %s, %v, want %s", tt.in, got, err, tt.want)
		}
		again, err := Canonical(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("Canonical(%s) = %s, %v, want the same", got, again, err)
		}
	}
}

func TestCanonicalInvalid(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	tests := []any{
		math.NaN(), math.Inf(1), []float64{math.Inf(-1)}, func() {}, make(chan int),
		time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC),
		json.RawMessage(deep),
	}
	for _, s := range []string{
		``, ` `, `{`, `[`, `"`, `"\`, `"\x"`, `"\u12g4"`, `"\u12"`, "\"\n\"", `nul`, `tru`, `-`, `+1`, `01`, `.5`, `1.`,
		`1e`, `1e+`, `1e999999999`, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{1:2}`, `{"a":1 "b":2}`,
		`{"a":1,"a":2}`, `{"b":0,"a":1,"\u0061":2}`, `1 2`, `[]]`, "\x00", `'a'`, `NaN`,
	} {
		tests = append(tests, json.RawMessage(s))
	}
	for _, in := range tests {
		if got, err := Canonical(in); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("Canonical(%.50v) = %s, %v, want ErrInvalid", in, got, err)
		}
	}
}

// TestCanonicalFloatForm checks that floats have the form of encoding/json.
func TestCanonicalFloatForm(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		f := math.Float64frombits(rnd.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		want, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{string(want), strconv.FormatFloat(f, 'e', -1, 64), strconv.FormatFloat(f, 'f', -1, 64)} {
			if got, err := Canonical(json.RawMessage(form)); err != nil || string(got) != string(want) {
				t.Errorf("Canonical(%s) = %s, %v, want %s", form, got, err, want)
			}
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":[1,2.50e1,-0],"a":"\ud83d\ude00\n\u0041"}`, `"\ud800"`, "\"\xff\"", `{"\\":1,"]":2}`, `1e-7`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Canonical(json.RawMessage(data))
		var want any
		if derr := json.Unmarshal(data, &want); derr != nil {
			var limit *json.UnmarshalTypeError // a number too large for a float64
			if err == nil && !errors.As(derr, &limit) {
				t.Fatalf("Canonical(%q) = %q, though it is not JSON: %v", data, got, derr)
			}
			return
		}
		if err != nil {
			return // repeated keys, too deep, a huge exponent
		}
		var back any
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("Canonical(%q) = %q, which is not JSON: %v", data, got, err)
		}
		if diff := cmp.Diff(want, back); diff != "" {
			t.Fatalf("Canonical(%q) = %q, another value: %s", data, got, diff)
		}
		if again, err := Canonical(got); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("Canonical(%q) = %q, %v, want the same", got, again, err)
		}
	})
}
