package ingest

import (
	"path"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
)

// aclKey is the key of the ACL in sidecars. It never is metadata.
const aclKey = "acl"

// metadata puts a document's typed keys together: what is derived from the file
// and its text, over it what the source says of itself, over it the sidecar. A
// language that nobody knows is none, whoever declares it.
//
// "path" is set for what lies below an ingested folder, and not for a file that
// was named itself; rootOf depends on it.
func metadata(f source.File, c source.Content, parsed parse.Document, sidecar assay.Metadata) assay.Metadata {
	m := assay.Metadata{
		assay.MetaSource: assay.StringValue(f.Source),
		assay.MetaType:   assay.StringValue(parsed.Type),
		assay.MetaTitle:  assay.StringValue(title(f, parsed)),
	}
	if f.URI != f.Root {
		m[assay.MetaPath] = assay.ListValue(strings.Split(f.Rel, "/")...)
	}
	if !c.Modified.IsZero() {
		m[assay.MetaModified] = assay.TimeValue(c.Modified)
	}
	for key, v := range parsed.Metadata {
		if v, ok := fitting(key, v); ok {
			m[key] = v
		}
	}
	if _, ok := m[assay.MetaLanguage]; !ok {
		if code := languageOf(parsed); code != "" {
			m[assay.MetaLanguage] = assay.StringValue(code)
		}
	}
	for key, v := range sidecar {
		if key == assay.MetaLanguage { // texts are analysed by it
			var known bool
			if v, known = fitting(key, v); !known {
				continue
			}
		}
		m[key] = v
	}
	return m
}

// title is what the source calls itself, else its first heading, else its file
// name. A heading that every document of its kind has is no title, nor is that of
// a file's first record.
func title(f source.File, parsed parse.Document) string {
	if t := strings.TrimSpace(parsed.Title); t != "" {
		return t
	}
	records := parsed.Type == "csv" || parsed.Type == "json" || parsed.Type == "jsonl"
	for _, b := range parsed.Blocks {
		label := strings.TrimSpace(b.Label)
		if b.Kind != parse.Heading || label == "" {
			continue
		}
		if records || anyones[strings.ToLower(label)] {
			break
		}
		return label
	}
	if f.Source == source.FromStdin && f.Rel == "-" {
		return "standard input"
	}
	return path.Base(f.Rel)
}

// anyones are headings that say nothing of the document that begins with them.
var anyones = map[string]bool{
	"name": true, "synopsis": true, "description": true, "abstract": true, "summary": true, "introduction": true,
	"overview": true, "contents": true, "table of contents": true, "preface": true, "foreword": true,
}

// fitting brings what a source says of itself under a key that assay knows to
// the key's kind; ok is false where that cannot be done, and what is derived
// stands. Other keys are the user's and stay as they are.
func fitting(key string, v assay.Value) (fit assay.Value, ok bool) {
	switch key {
	case aclKey:
		return v, false // the sidecar's ACL counts; without one, build has refused
	case assay.MetaCreated, assay.MetaModified:
		if v.Kind == assay.KindString {
			t, ok := source.ParseTime(v.String)
			return assay.TimeValue(t), ok
		}
		return v, v.Kind == assay.KindTime
	case assay.MetaPath:
		return v, v.Kind == assay.KindList
	case assay.MetaAuthor:
		return v, v.Kind == assay.KindString || v.Kind == assay.KindList
	case assay.MetaLanguage:
		code, known := language.Code(v.String)
		return assay.StringValue(code), known && v.Kind == assay.KindString
	case assay.MetaSource, assay.MetaType, assay.MetaTitle:
		text := strings.TrimSpace(v.Text())
		return assay.StringValue(text), text != ""
	}
	return v, true
}
