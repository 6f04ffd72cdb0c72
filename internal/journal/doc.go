// Package journal defines the byte forms of a run's journal, which all stores share: [Canonical]
// JSON, and a sealed form of records in which any later change can be detected ([Seal] and [Open]).
//
// A sealed record has three parts:
//
//   - The payload is canonical JSON of {"error", "input", "output"}, where a
//     string of 256 bytes or more is replaced by {"$value": HASH}, HASH being the
//     SHA-256 of its text in lower-case hexadecimal. The texts are values, kept
//     once however often they occur. An object of the record that looks like such
//     a reference, {"$value": ...}, is written {"$$value": ...}, that one
//     {"$$$value": ...}, and so on.
//   - The header is canonical JSON of all other fields of the record and of the
//     payload's hash: SHA-256 of a salt of [SaltSize] random bytes and the payload.
//   - The leaf is SHA-256 of a zero byte and the header: the record's leaf in a
//     Merkle tree.
//
// The payload and the salt can be erased while the header and leaf are kept. The salt prevents
// guessing a short payload from its hash.
//
// The package stores nothing. The store decides where to keep the parts.
package journal
