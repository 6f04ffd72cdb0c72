package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// The headers of a message in the standard form.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp" // seconds since 1970, of the attempt
	HeaderSignature = "webhook-signature" // "v1," and the signature in base64, several separated by spaces
)

// Tolerance is how far a message's timestamp may be from the receiver's clock.
const Tolerance = 5 * time.Minute

const (
	secretPrefix = "whsec_"
	leastSecret  = 24 // bytes
	mostSecret   = 64
)

// A key is a decoded signing secret.
type key []byte

// parseKey decodes a secret: "whsec_" and 24 to 64 bytes in base64. The error does not repeat it.
func parseKey(secret string) (key, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(secret), secretPrefix)
	if !ok {
		return nil, fmt.Errorf("a signing secret begins with %s: %w", secretPrefix, assay.ErrInvalid)
	}
	k, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("a signing secret is base64 after %s: %w", secretPrefix, assay.ErrInvalid)
	}
	if len(k) < leastSecret || len(k) > mostSecret {
		return nil, fmt.Errorf("a signing secret has %d to %d bytes, this one has %d: %w", leastSecret, mostSecret, len(k), assay.ErrInvalid)
	}
	return k, nil
}

// sign returns the signature of a message: HMAC-SHA256 of its ID, timestamp and body.
func (k key) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// ErrSignature means that a message is not signed by one of the secrets, or is not complete.
var ErrSignature = errors.New("webhook: not a message signed by this secret")

// ErrTimestamp means that the timestamp of a message is more than Tolerance from the current time,
// as that of a message that was recorded and sent again.
var ErrTimestamp = errors.New("webhook: too old or too new")

// Verify checks a message in the standard form at its receiver. body is the body as received, and
// secrets are those that the sender may sign with, each "whsec_" and base64. A sender delivers at
// least once, so a receiver must also ignore a message whose ID it has already accepted: it keeps
// IDs for four days, since a sender tries for three.
func Verify(header http.Header, body []byte, now time.Time, secrets ...string) error {
	id, timestamp := header.Get(HeaderID), header.Get(HeaderTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return ErrSignature
	}
	var keys []key
	for _, s := range secrets {
		k, err := parseKey(s)
		if err != nil {
			return err
		}
		keys = append(keys, k)
	}
	signed := slices.ContainsFunc(strings.Fields(header.Get(HeaderSignature)), func(signature string) bool {
		return slices.ContainsFunc(keys, func(k key) bool {
			return hmac.Equal([]byte(signature), []byte(k.sign(id, timestamp, body)))
		})
	})
	if !signed {
		return ErrSignature
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Tolerance || age < -Tolerance {
		return ErrTimestamp
	}
	return nil
}
