// Package journal holds the byte forms of a run's journal, which every store
// shares: [Canonical] JSON, and how a record is sealed into bytes that show any
// later change ([Seal] and [Open]).
//
// A sealed record has three parts.
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
// The payload and the salt can be erased while header and leaf stay: the salt is
// what keeps a short payload from being guessed by its hash.
//
// The package stores nothing; a store keeps the parts where it likes.
package journal
