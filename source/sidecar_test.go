package source

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestParseSidecar(t *testing.T) {
	legal := assay.ACL{Restricted: true, Allow: []string{"group:legal"}}
	day := assay.TimeValue(time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC))
	tests := []struct {
		name, data string
		want       Sidecar
	}{
		{"empty", `{}`, Sidecar{}},
		{"plain", `{"team":"legal","year":2023,"draft":true,"tags":["a"],"acl":["group:legal"]}`, Sidecar{assay.Metadata{
			"team": assay.StringValue("legal"), "year": assay.NumberValue(2023), "draft": assay.BooleanValue(true), "tags": assay.ListValue("a"),
		}, legal}},
		{"bedrock, simple", `{"metadataAttributes":{"key":"value","n":1}}`, Sidecar{Metadata: assay.Metadata{
			"key": assay.StringValue("value"), "n": assay.NumberValue(1),
		}}},
		{"bedrock, typed", `{"metadataAttributes":{
			"s":{"value":{"type":"STRING","stringValue":"x"},"includeForEmbedding":true},
			"n":{"value":{"type":"NUMBER","numberValue":20221205},"includeForEmbedding":false},
			"b":{"value":{"type":"BOOLEAN","booleanValue":true}},
			"l":{"value":{"type":"STRING_LIST","stringListValue":["a","b"]}},
			"acl":{"value":{"type":"STRING_LIST","stringListValue":["group:legal"]}}}}`, Sidecar{assay.Metadata{
			"s": assay.StringValue("x"), "n": assay.NumberValue(20221205), "b": assay.BooleanValue(true), "l": assay.ListValue("a", "b"),
		}, legal}},
		{"bedrock with acl beside", `{"metadataAttributes":{"k":"v"},"acl":["group:legal"]}`, Sidecar{assay.Metadata{"k": assay.StringValue("v")}, legal}},
		{"bedrock for csv", `{"metadataAttributes":{},"documentStructureConfiguration":{"type":"RECORD_BASED_STRUCTURE_METADATA"}}`, Sidecar{}},
		{"nobody", `{"acl":[]}`, Sidecar{ACL: assay.ACL{Restricted: true, Allow: []string{}}}},
		{"everybody, twice", `{"acl":["*","user:a","*"]}`, Sidecar{ACL: assay.ACL{Restricted: true, Allow: []string{"*", "user:a"}}}},
		{"times under their own keys and the standard ones", `{"created_at":"2024-05-01","lastModified":"2024-05-01","date":"spring"}`, Sidecar{Metadata: assay.Metadata{
			"created_at": day, "created": day, "lastModified": day, "modified": day, "date": assay.StringValue("spring"),
		}}},
		{"a standard key that is given", `{"date":"2023-01-01","created":"2024-05-01"}`, Sidecar{Metadata: assay.Metadata{
			"date": assay.TimeValue(day.Time.AddDate(-1, -4, 0)), "created": day,
		}}},
		{"times", `{"created":"2024-05-01","due":"2024-05-01","when":{"time":"2024-05-01T00:00:00Z"}}`, Sidecar{Metadata: assay.Metadata{
			"created": day, "due": assay.StringValue("2024-05-01"), "when": day,
		}}},
		{"authors", `{"author":["a","b"]}`, Sidecar{Metadata: assay.Metadata{"author": assay.ListValue("a", "b")}}},
		{"byte order mark", "\ufeff{\"a\":1}", Sidecar{Metadata: assay.Metadata{"a": assay.NumberValue(1)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseSidecar([]byte(tt.data))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("ParseSidecar (-want +got):\n%s", d)
			}
		})
	}
}

// badSidecars must all be rejected. Accepting one could grant access that it is meant to deny, or
// lose part of its content.
var badSidecars = []string{
	``, `null`, `[]`, `"x"`, `{`, `{"a":1`, `{"a":1}}`, `{"a":1} {"acl":["*"]}`, `{a:1}`, `{"a":1,}`,
	`{"a":null}`, `{"a":{}}`, `{"a":[1]}`, `{"a":["x",null]}`, `{"a":1e999}`, `{"a":9007199254740993}`, `{"":1}`,
	`{"a":1,"a":2}`, `{"acl":["group:legal"],"acl":["*"]}`, "{\"a\":\"\xff\"}",
	`{"acl":null}`, `{"acl":"*"}`, `{"acl":{}}`, `{"acl":[1]}`, `{"acl":[null]}`, `{"acl":["legal"]}`, `{"acl":["group:"]}`, `{"acl":["team:x"]}`,
	`{"ACL":["group:legal"]}`, `{"acl ":["group:legal"]}`,
	`{"metadataAttributes":null}`, `{"metadataAttributes":[]}`, `{"metadataAttributes":{"a":1,"a":1}}`,
	`{"metadataAttributes":{"acl":["*"]},"acl":["group:legal"]}`, `{"metadataAttributes":{},"alc":["group:legal"]}`,
	`{"metadataAttributes":{"a":{"value":{"type":"STRING","numberValue":1}}}}`,
	`{"metadataAttributes":{"a":{"value":{"type":"STRING","stringValue":1}}}}`,
	`{"metadataAttributes":{"a":{"value":{"type":"STRING","stringValue":null}}}}`,
	`{"metadataAttributes":{"a":{"value":{"type":"DATE","stringValue":"x"}}}}`,
	`{"metadataAttributes":{"a":{"value":{"stringValue":"x"}}}}`,
	`{"metadataAttributes":{"a":{"value":{"type":1,"stringValue":"x"}}}}`,
	`{"metadataAttributes":{"a":{"value":"x"}}}`,
	`{"metadataAttributes":{"a":{"value":{"type":"STRING","stringValue":"x"},"acl":["group:x"]}}}`,
	`{"metadataAttributes":{"acl":{"value":{"type":"STRING","stringValue":"*"}}}}`,
	`{"created":"last summer"}`, `{"created":20240501}`, `{"title":1}`, `{"path":"a/b"}`, `{"author":1}`, `{"language":["en"]}`,
}

func TestParseSidecarRejects(t *testing.T) {
	for _, data := range badSidecars {
		if s, err := ParseSidecar([]byte(data)); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("ParseSidecar(%s) = %+v, %v; want ErrInvalid", data, s, err)
		}
	}
}

func TestSidecarFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"none.md": "x",
		"good.md": "x", "good.md.metadata.json": `{"acl":["user:a"]}`,
		"case.md": "x", "case.md.Metadata.JSON": `{"acl":["user:a"]}`,
		"both.md": "x", "both.md.metadata.json": `{"acl":["user:a"]}`, "both.md.METADATA.json": `{}`,
		"bad.md": "x", "bad.md.metadata.json": `{"acl"`,
		"dir.md": "x", "dir.md.metadata.json/": "",
		"large.md": "x", "large.md.metadata.json": strings.Repeat(" ", MaxSidecarBytes) + `{}`,
		"out.md": "x", "out.md.metadata.json": "->/etc/hostname",
		"gone.md": "x", "gone.md.metadata.json": "->nowhere",
		"ignored.md": "x", "ignored.md.metadata.json": `{"acl":["user:a"]}`, ".gitignore": "ignored.md.*\n",
		".h/l.md": "x", ".h/l.md.metadata.json": `{"acl":["user:a"]}`, "l.md": "->.h/l.md",
		".h/m.md": "x", ".h/m.md.metadata.json": `{`, "m.md": "->.h/m.md", "m.md.metadata.json": `{"acl":["user:a"]}`,
	})
	acl, bad := "user:a", "bad_sidecar"
	want := map[string]string{
		"none.md": "", "good.md": acl, "case.md": acl, "both.md": bad, "bad.md": bad, "dir.md": bad, "large.md": bad,
		"out.md": bad, "gone.md": bad, "ignored.md": acl, "l.md": acl, "m.md": acl,
	}
	read := func(roots []string) map[string]string {
		got := map[string]string{}
		for f, err := range Walk(t.Context(), roots, Options{}) {
			var skip *Skip
			if errors.As(err, &skip) && skip.Reason == SameFile {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err := f.Sidecar()
			if errors.As(err, &skip) {
				got[f.Rel] = string(skip.Reason)
				continue
			}
			got[f.Rel] = strings.Join(s.ACL.Allow, " ")
		}
		return got
	}
	if d := cmp.Diff(want, read([]string{dir})); d != "" {
		t.Errorf("sidecars of a folder (-want +got):\n%s", d)
	}
	var roots []string
	for name := range want {
		roots = append(roots, filepath.Join(dir, name))
	}
	if d := cmp.Diff(want, read(roots)); d != "" {
		t.Errorf("sidecars of files named one by one (-want +got):\n%s", d)
	}
}

func FuzzParseSidecar(f *testing.F) {
	for _, s := range badSidecars {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"metadataAttributes":{"s":{"value":{"type":"STRING","stringValue":"x"},"includeForEmbedding":true}},"acl":["*"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSidecar(data)
		if err != nil {
			if !errors.Is(err, assay.ErrInvalid) || s.Metadata != nil || s.ACL.Restricted {
				t.Errorf("ParseSidecar(%q) = %+v, %v", data, s, err)
			}
			return
		}
		if _, err := json.Marshal(s.Metadata); err != nil {
			t.Errorf("ParseSidecar(%q): metadata %v: %v", data, s.Metadata, err)
		}
		if _, err := assay.RestrictTo(s.ACL.Allow...); err != nil || !s.ACL.Restricted && s.ACL.Allow != nil {
			t.Errorf("ParseSidecar(%q): ACL %v: %v", data, s.ACL, err)
		}
	})
}
