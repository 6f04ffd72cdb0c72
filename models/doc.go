// Package models keeps other encoders than the one in the binary: in a folder,
// each in a folder of its own, with what is known of it and the SHA-256 sums of
// its files.
//
// A Folder lists, pulls, checks and removes them. Pull is the only thing in
// assay that makes a network connection, and only for what it was asked for; a
// model that is a local folder, or was pulled on another computer and carried
// over, needs none. What a model is can be told by who runs it alone: Folder.Open
// is a function that opens a folder as an encoder, and a model that it refuses is
// not installed.
//
// Quantise makes an encoder smaller: the one in the binary is made with it.
//
// Which encoder serves which data directory is no matter of this package, but of
// the engine.
package models
