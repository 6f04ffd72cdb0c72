package parseworker

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
)

// fill sets every field below v to a value that is not zero.
func fill(t *testing.T, v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Int:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 251))
	case reflect.Float32:
		v.SetFloat(float64(*n) / 4)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), 2, 2)
		fill(t, s.Index(0), n)
		fill(t, s.Index(1), n)
		v.Set(s)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	default:
		t.Fatalf("a field of type %v: send it, and fill it here", v.Type())
	}
}

// TestRoundTrip sends a document with all fields set.
func TestRoundTrip(t *testing.T) {
	var want parse.Parsed
	n := 0
	d := &want.Document
	for _, f := range []any{&d.Type, &d.Title, &d.Text, &d.Anchors, &d.Structure, &d.Images, &d.Notes} {
		fill(t, reflect.ValueOf(f).Elem(), &n)
	}
	d.Blocks[1].Kind = assay.BlockTableRow
	d.Metadata = assay.Metadata{
		"s": assay.StringValue("é"), "n": assay.NumberValue(1.5), "b": assay.BooleanValue(true), "l": assay.ListValue("a", "b"),
		"t": assay.TimeValue(time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)), "none": {Kind: assay.KindList, List: []string{}},
	}
	d.Images = []parse.Image{{After: 1, Page: 2, Type: "image/png", Data: []byte("\x89PNG"), Caption: "é"}}
	want.Path, want.Data = "a!/b", []byte("\x00data")
	if fields := reflect.TypeFor[parse.Document]().NumField(); fields != 9 {
		t.Errorf("a document has %d fields: fill the new ones above", fields)
	}
	got := transfer(t, want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, kind := range parse.Kinds() {
		err := fmt.Errorf("parse x: the reason: %w", kind)
		got := transfer(t, parse.Parsed{Path: "p", Err: err}).Err
		if got.Error() != err.Error() {
			t.Errorf("error %q, want %q", got, err)
		}
		for _, other := range parse.Kinds() {
			if errors.Is(got, other) != (other == kind) {
				t.Errorf("%v: Is(%v) = %v", kind, other, errors.Is(got, other))
			}
		}
	}
}

func transfer(t *testing.T, p parse.Parsed) parse.Parsed {
	t.Helper()
	var b bytes.Buffer
	if err := newEncoder(&b).parsed(p); err != nil {
		t.Fatal(err)
	}
	d := newDecoder(&b)
	kind, value, err := d.message()
	if err != nil || kind != kindParsed {
		t.Fatalf("kind %c, %v", kind, err)
	}
	got, err := d.parsed(value)
	if err != nil {
		t.Fatal(err)
	}
	if b.Len()+d.r.Buffered() != 0 {
		t.Errorf("%d bytes are left", b.Len()+d.r.Buffered())
	}
	return got
}

// FuzzDecode checks that damaged messages are errors and neither panics nor large allocations.
func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	d, err := parse.Parse(f.Context(), parse.Input{Name: "x.html", Data: []byte("<h1>H</h1><table><tr><td>a<td>b</table><p>text")})
	if err != nil {
		f.Fatal(err)
	}
	if err := newEncoder(&b).parsed(parse.Parsed{Document: d}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		d := newDecoder(bytes.NewReader(data))
		kind, value, err := d.message()
		if err != nil {
			return
		}
		if kind == kindRequest {
			_, _ = d.request(value)
			return
		}
		if p, err := d.parsed(value); err == nil {
			transfer(t, p)
		}
	})
}
