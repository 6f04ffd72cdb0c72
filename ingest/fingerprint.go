package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/chunk"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
)

// Version names how this package makes metadata. It changes whenever the same
// source would give another document.
const Version = "3"

// pipelineVersion identifies everything but the source that a document depends
// on.
func pipelineVersion(o chunk.Options) string {
	return fmt.Sprintf("ingest %s, parse %s, chunk %s %+v", Version, parse.Version, chunk.Version, o)
}

// A fingerprint is what SourceInfo.Hash holds: hashes of what a document was
// made of, in parts, so that each change is told apart without reading more than
// it needs. Its text is
//
//	pipeline "/" sidecar's metadata "/" content [ "/racy" ]
//
// each part the first 32 hexadecimal digits of a SHA-256. The ACL is not in it;
// it is compared itself.
type fingerprint struct {
	pipeline string
	metadata string
	content  string
	// racy: the file was so young when it was read that it could have changed
	// once more without a change of its time. Then size and time prove nothing.
	racy bool
}

const racySuffix = "racy"

// String returns the stored form.
func (f fingerprint) String() string {
	parts := []string{f.pipeline, f.metadata, f.content}
	if f.racy {
		parts = append(parts, racySuffix)
	}
	return strings.Join(parts, "/")
}

// parseFingerprint reads the stored form. Anything else gives the zero
// fingerprint, which is like no other.
func parseFingerprint(s string) fingerprint {
	parts := strings.Split(s, "/")
	if len(parts) != 3 && (len(parts) != 4 || parts[3] != racySuffix) {
		return fingerprint{}
	}
	return fingerprint{pipeline: parts[0], metadata: parts[1], content: parts[2], racy: len(parts) == 4}
}

// unread reports whether the stored document is what ingesting f would give, as
// far as can be told without reading it.
func (f fingerprint) unread(want fingerprint, stored assay.SourceInfo, file source.File) bool {
	return f.pipeline == want.pipeline && f.metadata == want.metadata && !f.racy &&
		!file.Modified.IsZero() && stored.SizeBytes == file.SizeBytes && stored.Modified.Equal(file.Modified)
}

// racyWindow is how much older than the moment of reading a file's time must be
// to prove that it has not changed since. The coarsest clock of a file system in
// use (FAT) ticks every 2 s. Git's index has the same guard.
const racyWindow = 2 * time.Second

func isRacy(c source.Content) bool { return c.Read.Sub(c.Modified) < racyWindow }

func contentHash(data []byte) string { return hash(data) }

// metadataHash hashes a sidecar's metadata by meaning: white space and order of
// keys do not count.
func metadataHash(m assay.Metadata) string {
	data, err := json.Marshal(m)
	if err != nil {
		panic("ingest: sidecar metadata with a value of no kind: " + err.Error()) // ParseSidecar makes none
	}
	return hash(data)
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

func sameACL(a, b assay.ACL) bool {
	return a.Restricted == b.Restricted && slices.Equal(a.Allow, b.Allow)
}
