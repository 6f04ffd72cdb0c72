package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safetensors"
)

// file returns a file with the given header and body.
func file(header, body string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), body...)
}

func TestWriteThenOpen(t *testing.T) {
	want := []safetensors.Data{
		{Name: "table", Type: safetensors.U8, Shape: []int{2, 3}, Bytes: []byte{1, 2, 3, 4, 5, 6}},
		safetensors.Float32Data("norm", []float32{1.5, -2}, 2),
		{Name: "half", Type: safetensors.F16, Shape: []int{2}, Bytes: []byte{0, 0x3c, 0, 0xc0}},
		safetensors.Float32Data("one", []float32{7}),
		{Name: "none", Type: safetensors.I8, Shape: []int{0, 4}},
	}
	var out, again bytes.Buffer
	if err := safetensors.Write(&out, map[string]string{"format": "test"}, want); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Write(&again, map[string]string{"format": "test"}, want); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Fatalf("written twice, the files differ (%v)", err)
	}
	f, err := safetensors.OpenBytes(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Metadata()["format"]; got != "test" {
		t.Errorf("metadata format = %q", got)
	}
	if diff := cmp.Diff([]string{"half", "none", "norm", "one", "table"}, f.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for _, w := range want {
		got, ok := f.Tensor(w.Name)
		if !ok {
			t.Fatalf("no tensor %s", w.Name)
		}
		data, err := f.Bytes(got)
		if err != nil {
			t.Fatal(err)
		}
		if got.Type != w.Type || fmt.Sprint(got.Shape) != fmt.Sprint(w.Shape) || !bytes.Equal(data, w.Bytes) {
			t.Errorf("tensor %s = %s %v %v, want %s %v %v", w.Name, got.Type, got.Shape, data, w.Type, w.Shape, w.Bytes)
		}
		if start, end := f.Range(got); !bytes.Equal(out.Bytes()[start:end], w.Bytes) {
			t.Errorf("tensor %s does not lie at %d to %d", w.Name, start, end)
		}
	}
	half, _ := f.Tensor("half")
	if got, err := f.Float32s(half); err != nil || !cmp.Equal(got, []float32{1, -2}) {
		t.Errorf("half = %v, %v", got, err)
	}
	table, _ := f.Tensor("table")
	if _, err := f.Float32s(table); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("Float32s of U8: %v, want ErrInvalid", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, data := range map[string][]safetensors.Data{
		"bytes that do not fit": {{Name: "a", Type: safetensors.F32, Shape: []int{2}, Bytes: make([]byte, 4)}},
		"unknown type":          {{Name: "a", Type: "F31", Shape: []int{1}, Bytes: make([]byte, 4)}},
		"a name twice":          {safetensors.Float32Data("a", nil, 0), safetensors.Float32Data("a", nil, 0)},
	} {
		if err := safetensors.Write(&bytes.Buffer{}, nil, data); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

// TestOpenRefuses checks that all faults of a file are reported when it is opened.
func TestOpenRefuses(t *testing.T) {
	const entry = `{"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}}`
	tests := map[string]struct {
		data []byte
		want string
	}{
		"empty":            {nil, "0 bytes"},
		"a web page":       {[]byte("<!DOCTYPE html><html>"), "not a file of tensors"},
		"header cut":       {file(entry, "")[:20], "cut short"},
		"no JSON":          {file("nonsense", ""), "header"},
		"cut short":        {file(entry, "abc"), "cut short: 64 bytes of 65"},
		"too long":         {file(entry, "abcde"), "1 bytes too long"},
		"unknown type":     {file(`{"a":{"dtype":"I9","shape":[4],"data_offsets":[0,4]}}`, "abcd"), `unknown type "I9"`},
		"negative shape":   {file(`{"a":{"dtype":"I8","shape":[-4],"data_offsets":[0,4]}}`, "abcd"), "shape"},
		"shape overflows":  {file(`{"a":{"dtype":"I8","shape":[2147483647,2147483647,2147483647],"data_offsets":[0,4]}}`, "abcd"), "shape"},
		"size differs":     {file(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}}`, "abcd"), "do not hold"},
		"one offset":       {file(`{"a":{"dtype":"I8","shape":[4],"data_offsets":[0]}}`, "abcd"), "1 offsets"},
		"backwards":        {file(`{"a":{"dtype":"I8","shape":[4],"data_offsets":[4,0]}}`, "abcd"), "do not hold"},
		"before the start": {file(`{"a":{"dtype":"I8","shape":[4],"data_offsets":[-4,0]}}`, "abcd"), "do not hold"},
		"overlap":          {file(`{"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"I8","shape":[4],"data_offsets":[2,6]}}`, "abcdef"), "begins at byte"},
		"gap":              {file(`{"a":{"dtype":"I8","shape":[1],"data_offsets":[3,4]}}`, "abcd"), "begins at byte"},
		"metadata no text": {file(`{"__metadata__":{"a":1}}`, ""), "__metadata__"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := safetensors.OpenBytes(test.data)
			if !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want ErrDamaged with %q", err, test.want)
			}
		})
	}
}

// TestWiden checks all half-precision numbers against the definition of their bits.
func TestWiden(t *testing.T) {
	for bits := range 1 << 16 {
		h := uint16(bits)
		exponent, fraction := int(h>>10&0x1f), float64(h&0x3ff)
		want := math.Ldexp(1+fraction/1024, exponent-15)
		switch {
		case exponent == 0:
			want = math.Ldexp(fraction, -24)
		case exponent == 0x1f && fraction == 0:
			want = math.Inf(1)
		case exponent == 0x1f:
			want = math.NaN()
		}
		if h>>15 == 1 {
			want = -want
		}
		got := float64(safetensors.Widen(safetensors.F16, []byte{byte(h), byte(h >> 8)})[0])
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != math.Signbit(want) && !math.IsNaN(want) {
			t.Fatalf("half %#04x = %v, want %v", h, got, want)
		}
	}
	if got := safetensors.Widen(safetensors.BF16, []byte{0xc0, 0x3f}); got[0] != 1.5 {
		t.Errorf("bfloat16 0x3fc0 = %v, want 1.5", got[0])
	}
}

// TestShared reads all tensors of the shared model, and checks that a truncated copy is rejected.
func TestShared(t *testing.T) {
	shared := os.Getenv("ASSAY_TESTDATA")
	if shared == "" {
		t.Skip("ASSAY_TESTDATA is not set")
	}
	data, err := os.ReadFile(filepath.Join(shared, "models", "gte-small", "model.safetensors"))
	if err != nil {
		t.Skip(err)
	}
	f, err := safetensors.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range f.Names() {
		tensor, _ := f.Tensor(name)
		if values, err := f.Float32s(tensor); err != nil || len(values) != tensor.Len() {
			t.Errorf("%s: %d values, %v", name, len(values), err)
		}
	}
	if _, err := safetensors.OpenBytes(data[:len(data)/2]); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("half of the file: %v, want ErrDamaged", err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"__metadata__":{"format":"pt"}}`, "abcd"))
	f.Add(file(`{"a":{"dtype":"I8","shape":[],"data_offsets":[0,1]}}  `, "a"))
	f.Add(file(`{}`, ""))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 127})
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := safetensors.OpenBytes(data)
		if err != nil {
			if !errors.Is(err, assay.ErrDamaged) {
				t.Fatalf("%v is not ErrDamaged", err)
			}
			return
		}
		total := 0
		for _, name := range file.Names() {
			tensor, _ := file.Tensor(name)
			b, err := file.Bytes(tensor)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			total += len(b)
		}
		if total > len(data) {
			t.Fatalf("%d bytes of tensors in a file of %d", total, len(data))
		}
	})
}
