// Package webhook tells other programs what happens to a tenant: an answer waits for a review, a
// canary raised an alarm, a limit was reached.
//
// A target names a receiver and the acts of the audit log that it is told about. A [Deliverer] makes
// one message of each such act and sends it until the receiver accepts it, at least once and always
// with the same ID. Messages carry identifiers and states, never the text of a question, an answer
// or a document.
//
// The form is that of Standard Webhooks 1.0 (https://www.standardwebhooks.com), or that of Slack's
// incoming webhooks. [Verify] checks a message at the receiver.
package webhook
