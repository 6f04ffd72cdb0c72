// Package models manages encoders other than the embedded one. Each is installed in a folder of its
// own, with a record of its properties and the SHA-256 sums of its files.
//
// A Folder lists, pulls, checks and removes them. Pull makes network connections only to the
// requested source, and nothing else in this package makes any. A model from a local folder, or one
// that was pulled on another computer and copied, needs none. This package cannot tell whether a
// model can be run: the function Folder.Open opens a folder as an encoder, and a model that it
// rejects is not installed.
//
// Quantise makes an encoder smaller. The embedded encoder is made with it.
//
// The assignment of encoders to data directories is the engine's, not this package's.
package models
