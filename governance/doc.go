// Package governance reports on how a tenant's questions were answered and overseen, for the people
// who are responsible for it: whether every session has its whole trace, which tools were called and
// how that changed, how often reviewers overrule answers and how long they look, iterations, limits
// hit, times, costs, the verifier's interventions, and the alarms and administrative acts of the
// audit log.
//
// A report is made from what the store holds and nothing else, so equal data and options give equal
// reports. It has identifiers and numbers, and no text of a question, an answer or a document and no
// name of a person.
package governance
