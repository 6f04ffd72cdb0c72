package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/assay-rag/assay/identity"
)

// CheckMethod returns nil if a method of a session may be called now, and otherwise the error with
// which the call would be refused: see Session. A protocol whose refusals precede its response uses
// it; the method checks again.
func CheckMethod(ctx context.Context, s *Session, method string) error {
	c, err := s.enter(ctx, method)
	if err != nil {
		return err
	}
	c.done()
	return nil
}

// SessionOwner identifies the tenant, the user and the API key of a session, so that what one caller
// left in a protocol's state can be refused to another. It is 64 hexadecimal digits, the same for
// every token of a user, and says nothing about them.
func SessionOwner(s *Session) string {
	p := s.grant.Principal
	sum := sha256.Sum256([]byte(strings.Join([]string{s.identity, p.User, p.Key}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// SessionGrant returns the grant of a session, for a door that shows who is signed in and what they may
// do. Each method checks the grant itself.
func SessionGrant(s *Session) identity.Grant { return s.grant }

// SessionReadsFile reports whether a session may ingest a file of this machine: the file exists and is
// in one of HostConfig.Folders. Session.Ingest checks it too.
func SessionReadsFile(s *Session, path string) bool {
	return withinFolders(path, s.host.current().Folders)
}

// SessionReadsPages reports whether a session may have any web page read by Session.UploadURL, which
// decides for each address.
func SessionReadsPages(s *Session) bool { return s.host.current().AllowURL != nil }

// SessionAddsSources reports whether a session may add any source by Session.AddSource, which decides
// for each.
func SessionAddsSources(s *Session) bool { return s.host.current().AllowSource != nil }
