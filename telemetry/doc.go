// Package telemetry reports the runs of an engine and the requests of a server as OpenTelemetry
// traces and metrics, for Prometheus, as metrics in the embedded format of CloudWatch, and as
// structured logs.
//
// A [Telemetry] is an [engine.Observer]: each step of a run becomes a span with its own times, nested
// by the step's path. Nothing is exported unless a [Config] names a receiver. The words of questions,
// documents and answers are exported only with Config.Texts.
//
// An unreachable, slow or hostile receiver neither delays nor fails a run: spans wait in a queue of
// limited length, and those that do not fit are dropped and counted.
//
// names.go has the names of all spans, attributes, events and metrics. docs/telemetry.md describes
// them.
package telemetry
