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
	"github.com/assay-rag/assay/internal/chunk"
	"github.com/assay-rag/assay/source"
)

// Version is the version of this package's metadata. It changes whenever the same source would
// produce a different document.
const Version = "4"

// pipelineVersion identifies everything that a document depends on except its source.
func pipelineVersion(o chunk.Options, parser string) string {
	return fmt.Sprintf("ingest %s, parse %s, chunk %s", Version, parser, o)
}

// A fingerprint is the content of SourceInfo.Hash: separate hashes of the inputs of a document, so
// that each kind of change is detected with as little reading as possible. Its text is
//
//	pipeline "/" sidecar's metadata "/" content [ "/ocr=" program ] [ "/images=" describer ] [ "/racy" ]
//
// and each part is the first 32 hexadecimal digits of a SHA-256. The ACL is not included; it is
// compared directly.
type fingerprint struct {
	pipeline string
	metadata string
	content  string
	ocr      string // program that recognised text; empty: none
	images   string // model and prompt that described images; empty: none
	// racy means that the file was read so soon after its modification time that it could have
	// changed again within the same tick. Its size and time then prove nothing.
	racy bool
}

const (
	racySuffix   = "racy"
	ocrPrefix    = "ocr="
	imagesPrefix = "images="
)

// String returns the stored form.
func (f fingerprint) String() string {
	parts := []string{f.pipeline, f.metadata, f.content}
	if f.ocr != "" {
		parts = append(parts, ocrPrefix+f.ocr)
	}
	if f.images != "" {
		parts = append(parts, imagesPrefix+f.images)
	}
	if f.racy {
		parts = append(parts, racySuffix)
	}
	return strings.Join(parts, "/")
}

// parseFingerprint parses the stored form. For any other text it returns the zero fingerprint,
// which matches no file.
func parseFingerprint(s string) fingerprint {
	parts := strings.Split(s, "/")
	if len(parts) < 3 {
		return fingerprint{}
	}
	f := fingerprint{pipeline: parts[0], metadata: parts[1], content: parts[2]}
	for _, part := range parts[3:] {
		ocr, isOCR := strings.CutPrefix(part, ocrPrefix)
		images, isImages := strings.CutPrefix(part, imagesPrefix)
		switch {
		case isOCR:
			f.ocr = ocr
		case isImages:
			f.images = images
		case part == racySuffix:
			f.racy = true
		default:
			return fingerprint{}
		}
	}
	return f
}

// lacks reports whether a file with the documents is to be parsed again because text can be
// recognised now in pages that had none, or because its images are to be described. Documents keep
// recognised text and descriptions of another program or model.
func (f fingerprint) lacks(want fingerprint, docs []assay.Document) bool {
	noText := slices.ContainsFunc(docs, func(d assay.Document) bool { return d.Pages.NoText > 0 })
	toRecognize := noText && want.ocr != "" && f.ocr == ""
	toDescribe := want.images != "" && f.images != want.images
	return toRecognize || toDescribe
}

// unread reports whether a stored source is up to date, as far as can be determined without reading
// the file.
func (f fingerprint) unread(want fingerprint, stored assay.SourceInfo, file source.File) bool {
	return f.pipeline == want.pipeline && f.metadata == want.metadata && !f.racy &&
		!file.Modified.IsZero() && stored.SizeBytes == file.SizeBytes && stored.Modified.Equal(file.Modified)
}

// racyWindow is the age that a file's modification time must have at the moment of reading to prove
// that the file has not changed since. The coarsest file-system clock in use (FAT) ticks every 2 s.
// Git's index has the same guard.
const racyWindow = 2 * time.Second

func isRacy(c source.Content) bool { return c.Read.Sub(c.Modified) < racyWindow }

func contentHash(data []byte) string { return hash(data) }

// metadataHash hashes the meaning of a sidecar's metadata; white space and key order do not matter.
func metadataHash(m assay.Metadata) string {
	data, err := json.Marshal(m)
	if err != nil {
		panic("ingest: sidecar metadata with a value of no kind: " + err.Error()) // impossible for values from ParseSidecar
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
