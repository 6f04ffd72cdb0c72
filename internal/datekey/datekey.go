// Package datekey maps the names under which documents give the dates of their creation and last
// change.
package datekey

import (
	"strings"

	"github.com/assay-rag/assay"
)

// standard maps each name, in lower case without punctuation, to assay's own key.
var standard = map[string]string{
	"date": assay.MetaCreated, "created": assay.MetaCreated, "createdat": assay.MetaCreated, "published": assay.MetaCreated,
	"publisheddate": assay.MetaCreated, "publishdate": assay.MetaCreated, "pubdate": assay.MetaCreated, "dcdate": assay.MetaCreated,
	"dctermscreated": assay.MetaCreated, "articlepublishedtime": assay.MetaCreated,
	"modified": assay.MetaModified, "modifiedat": assay.MetaModified, "lastmod": assay.MetaModified, "lastmodified": assay.MetaModified,
	"updated": assay.MetaModified, "updatedat": assay.MetaModified, "lastupdated": assay.MetaModified, "revised": assay.MetaModified,
	"dctermsmodified": assay.MetaModified, "articlemodifiedtime": assay.MetaModified,
}

// punctuation removes the separators in which spellings of a key differ: created_at, created-at.
var punctuation = strings.NewReplacer("_", "", "-", "", ":", "", ".", "")

// Standard returns assay's own key for a key that names a date: assay.MetaCreated or
// assay.MetaModified. ok is false for any other key.
func Standard(key string) (own string, ok bool) {
	own, ok = standard[strings.ToLower(punctuation.Replace(key))]
	return own, ok
}
