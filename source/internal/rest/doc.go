// Package rest is the HTTP client of sources that are services with a REST interface.
//
// A [Client] sends credentials to one origin, reads bodies up to a limit, retries transient
// failures a bounded number of times as the service asks with Retry-After, and reports failures
// without secrets. A [Pager] bounds a list. [Skipped] tells a failure that concerns one item from a
// failure of the source.
package rest
