package ingest

import (
	"path"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
)

// aclKey is the key of the ACL in sidecars. It is never stored as metadata.
const aclKey = "acl"

// metadata merges a document's typed metadata: values derived from the file and its text,
// overridden by the source's own metadata, overridden by the sidecar. An unknown language code is
// ignored in any of them. inside is the path inside the file, empty for the file itself.
//
// "path" is set for files below an ingested folder, and not for a file that is a root itself.
func metadata(f source.File, c source.Content, parsed parse.Document, sidecar assay.Metadata, inside string) assay.Metadata {
	m := assay.Metadata{
		assay.MetaSource: assay.StringValue(f.Source),
		assay.MetaType:   assay.StringValue(parsed.Type),
		assay.MetaTitle:  assay.StringValue(title(f, parsed, inside)),
	}
	if p := documentPath(pathOf(f), inside); len(p) > 0 {
		m[assay.MetaPath] = assay.ListValue(p...)
	}
	if !c.Modified.IsZero() {
		m[assay.MetaModified] = assay.TimeValue(c.Modified)
	}
	for key, v := range parsed.Metadata {
		if v, ok := convertKind(key, v); ok {
			m[key] = v
		}
	}
	if _, ok := m[assay.MetaLanguage]; !ok {
		if code := languageOf(parsed); code != "" {
			m[assay.MetaLanguage] = assay.StringValue(code)
		}
	}
	for key, v := range sidecar {
		if key == assay.MetaLanguage { // text analysis depends on it
			var known bool
			if v, known = convertKind(key, v); !known {
				continue
			}
		}
		m[key] = v
	}
	delete(m, assay.MetaContainer) // no source may claim to be inside another
	if inside != "" {
		m[assay.MetaContainer] = assay.StringValue(f.URI)
	}
	return m
}

// documentPath returns the path of a document: that of its file and that inside it.
func documentPath(file []string, inside string) []string {
	if inside == "" {
		return file
	}
	return append(file[:len(file):len(file)], strings.Split(strings.ReplaceAll(inside, assay.PartSeparator, "/"), "/")...)
}

// title returns the source's own title, else its first heading, else its file name. Generic
// headings, and headings of the first record of a file, are not titles.
func title(f source.File, parsed parse.Document, inside string) string {
	if t := strings.TrimSpace(parsed.Title); t != "" {
		return t
	}
	records := parsed.Type == "csv" || parsed.Type == "json" || parsed.Type == "jsonl"
	for _, b := range parsed.Blocks {
		label := strings.TrimSpace(b.Label)
		if b.Kind != parse.Heading || label == "" {
			continue
		}
		if records || genericHeadings[strings.ToLower(label)] {
			break
		}
		return label
	}
	if inside != "" {
		return path.Base(inside)
	}
	if f.Source == source.FromStdin && f.Rel == "-" {
		return "standard input"
	}
	return path.Base(f.Rel)
}

// genericHeadings are generic headings, which do not describe the document they begin.
var genericHeadings = map[string]bool{
	"name": true, "synopsis": true, "description": true, "abstract": true, "summary": true, "introduction": true,
	"overview": true, "contents": true, "table of contents": true, "preface": true, "foreword": true,
}

// convertKind converts a value from the source's own metadata to the kind of its key. ok is false
// if that is not possible; the derived value is then kept. Values of other keys are returned
// unchanged.
func convertKind(key string, v assay.Value) (fit assay.Value, ok bool) {
	switch key {
	case aclKey:
		return v, false // only the sidecar's ACL counts; without one, build refuses the document
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
