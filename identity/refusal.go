package identity

import (
	"context"
	"errors"

	"github.com/assay-rag/assay"
)

// A Reason is why a credential was refused. It is for logs, the audit and the operator. A caller
// learns only the kind of the error, because a reason would help to guess.
type Reason string

// The reasons.
const (
	NoCredential    Reason = "no_credential"
	Several         Reason = "several_credentials"
	InQuery         Reason = "credential_in_query"
	Malformed       Reason = "malformed"
	TooLong         Reason = "too_long"
	Unsupported     Reason = "unsupported"
	UnknownKey      Reason = "unknown_key"
	Expired         Reason = "expired"
	NotYetValid     Reason = "not_yet_valid"
	Revoked         Reason = "revoked"
	ForeignIssuer   Reason = "foreign_issuer"
	ForeignAudience Reason = "foreign_audience"
	BadAlgorithm    Reason = "algorithm"
	Critical        Reason = "critical_header"
	BadType         Reason = "token_type"
	IDToken         Reason = "id_token"
	BadSignature    Reason = "signature"
	BadClaim        Reason = "claim"
	NoTenant        Reason = "no_tenant"
	NoRole          Reason = "no_role"
	NoScope         Reason = "no_scope"
	Unreachable     Reason = "issuer_unreachable"
	StoreFailed     Reason = "store_failed"
	Interrupted     Reason = "interrupted"
)

// Reasons lists the reasons with their kind of error and their meaning.
var Reasons = []struct {
	Reason Reason
	Kind   error
	Means  string
}{
	{NoCredential, assay.ErrUnauthenticated, "the request has no credential"},
	{Several, assay.ErrUnauthenticated, "the request has more than one credential"},
	{InQuery, assay.ErrUnauthenticated, "the URL has a credential, which logs and histories would keep"},
	{Malformed, assay.ErrUnauthenticated, "the credential has no valid form, or an API key is mistyped"},
	{TooLong, assay.ErrUnauthenticated, "the credential is longer than 16 KiB"},
	{Unsupported, assay.ErrUnauthenticated, "no API keys, or no issuers, are configured here"},
	{UnknownKey, assay.ErrUnauthenticated, "no such API key, or its secret is wrong"},
	{Expired, assay.ErrUnauthenticated, "the credential has expired"},
	{NotYetValid, assay.ErrUnauthenticated, "the token is not valid yet"},
	{Revoked, assay.ErrUnauthenticated, "the API key was revoked"},
	{ForeignIssuer, assay.ErrUnauthenticated, "the token's issuer is not configured"},
	{ForeignAudience, assay.ErrUnauthenticated, "the token was issued for another resource"},
	{BadAlgorithm, assay.ErrUnauthenticated, "the token's algorithm is not accepted"},
	{Critical, assay.ErrUnauthenticated, "the token's header demands an extension"},
	{BadType, assay.ErrUnauthenticated, "the token's type is not that of an access token"},
	{IDToken, assay.ErrUnauthenticated, "the token is an ID, refresh or logout token, not an access token"},
	{BadSignature, assay.ErrUnauthenticated, "no key of the issuer made the token's signature"},
	{BadClaim, assay.ErrUnauthenticated, "a claim is missing or has a wrong form"},
	{NoTenant, assay.ErrForbidden, "the caller is known and belongs to no configured tenant"},
	{NoRole, assay.ErrForbidden, "the caller is known and has no role"},
	{NoScope, assay.ErrForbidden, "the token's scopes leave nothing of what the caller's roles allow"},
	{Unreachable, assay.ErrUnavailable, "the issuer's keys cannot be had"},
	{StoreFailed, assay.ErrUnavailable, "the API keys cannot be read"},
	{Interrupted, context.Canceled, "the request was cancelled or timed out"},
}

// A Refusal is the error of a credential that was not accepted. Its message is that of its kind of
// error (see Reasons), without details. The fields are for logs. They hold no credential.
type Refusal struct {
	Reason Reason
	Detail string // for people; may hold text of the token or of the issuer, on one line; may be empty
	Key    string // ID of the API key; empty: no key. It was not verified if Reason is UnknownKey
	Issuer string // name of the issuer in the configuration; empty: none
	User   string // set for assay.ErrForbidden only

	kind error
}

func (r *Refusal) Error() string { return r.kind.Error() }

// Unwrap returns the kind of error: assay.ErrUnauthenticated, assay.ErrForbidden,
// assay.ErrUnavailable, or that of the context.
func (r *Refusal) Unwrap() error { return r.kind }

// Means returns the meaning of the reason.
func (r *Refusal) Means() string {
	for _, row := range Reasons {
		if row.Reason == r.Reason {
			return row.Means
		}
	}
	return string(r.Reason)
}

// refuse returns the Refusal for a reason.
func refuse(reason Reason, detail string) *Refusal {
	for _, row := range Reasons {
		if row.Reason == reason {
			return &Refusal{Reason: reason, Detail: detail, kind: row.Kind}
		}
	}
	return &Refusal{Reason: reason, Detail: detail, kind: assay.ErrUnauthenticated}
}

// interrupted returns the Refusal for the end of ctx, or nil if it has not ended.
func interrupted(ctx context.Context) *Refusal {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	return &Refusal{Reason: Interrupted, kind: err}
}

// ReasonOf returns the reason of an error of Authenticate, or "" if it has none.
func ReasonOf(err error) Reason {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Reason
	}
	return ""
}
